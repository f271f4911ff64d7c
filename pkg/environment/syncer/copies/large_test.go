// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// random returns text that cannot be compressed to less than three quarters.
func random(bytes int) string {
	binary := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(binary) // It never fails.
	return base64.StdEncoding.EncodeToString(binary)[:bytes]
}

// TestLargeObjects puts objects twice that the store would not accept in one row, as they are or as JSON with all its escapes.
func TestLargeObjects(t *testing.T) {
	angles := []byte(random(1_000_000))
	for i := range len(angles) / 5 {
		angles[5*i] = "<>&"[i%3]
	}
	for name, value := range map[string]string{
		"a fifth of it is escaped in HTML": string(angles),
		"control characters":               strings.Repeat("\x01\x02\x03\x04", 1<<18),
		"more than a request":              random(4_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, 2)
			want := settings("a=1", "large="+value)
			s.put(1, want)
			stored := s.rows()
			s.put(1, want)
			if !maps.Equal(stored, s.rows()) {
				t.Error("another put of the same objects has changed rows")
			}
			listed, _, err := s.List(t.Context(), alice.UID)
			at, known, errAt := s.At(t.Context(), alice.UID, 1)
			if err != nil || errAt != nil || !known || !cmp.Equal(want, listed) || !cmp.Equal(want, at) {
				t.Errorf("%d objects, %v; at the revision %d, %v, %v", len(listed), err, len(at), known, errAt)
			}
			s.put(2, settings("large=2"))
			s.put(3, settings("large=3"))
			if n := s.contents(); n != 3 {
				t.Errorf("%d contents, want 3", n)
			}
		})
	}
}

// TestMissingPart has another server delete a part of the content of an object.
func TestMissingPart(t *testing.T) {
	s := newFixture(t, 2)
	objects := settings("large=" + random(4_000_000))
	s.put(1, objects)
	parts := s.contents()
	for key := range s.rows() {
		if strings.Contains(key, "/content/") {
			if _, err := s.kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if s.listed() != "1:" || s.at(1) != "unknown" {
		t.Error("an object is listed without a part of its content")
	}
	s.put(1, objects)
	if listed, _, err := s.List(t.Context(), alice.UID); err != nil || !cmp.Equal(objects, listed) || s.contents() != parts || parts < 2 {
		t.Errorf("%d objects after another put, %v; %d parts, want %d", len(listed), err, s.contents(), parts)
	}
}

// TestRefusedWrites has the store refuse each write of a change once. What was written before is deleted, and another put succeeds.
func TestRefusedWrites(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("many%03d=1", i))
	}
	for refused := 1; ; refused++ {
		s := newFixture(t, 2)
		s.put(1, settings("a=1"))
		s.put(2, settings("a=2"))
		writes := 0
		s.Copies = copies.New(table.New(bolttest.WithWrites(s.kv, func(_ context.Context, write bolttest.Write) error {
			if !write.Put {
				return write.Commit()
			}
			if writes++; writes == refused {
				return rpctypes.ErrRequestTooLarge
			}
			return write.Commit()
		}), prefix), 2)
		err := s.Put(t.Context(), alice, change(3, settings(many...), "a"))
		if err != nil && (s.listed() != "2: a=2" || s.contents() != 2) {
			t.Errorf("copies after write %d was refused = %q, %d contents, want 2", refused, s.listed(), s.contents())
		}
		s.put(3, settings(many...), "a")
		if s.listed() != "3: "+strings.Join(many, " ") || s.at(2) != "a=2" || s.contents() != len(many)+1 {
			t.Errorf("%d contents after write %d was refused, and another put", s.contents(), refused)
		}
		if err == nil {
			if refused <= 3 {
				t.Errorf("%d writes", refused-1)
			}
			return
		}
	}
}
