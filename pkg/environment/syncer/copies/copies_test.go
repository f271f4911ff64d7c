// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

func TestAppliedRevisionIsKept(t *testing.T) {
	s := newFixture(t, 10)
	if got := s.listed(); got != "0:" {
		t.Errorf("copies at first = %q", got)
	}
	s.put(1, settings("a=1", "b=1"))
	s.put(1, settings("b=2"))
	s.put(2, settings("c=1"), "a")
	s.put(4, nil, "unknown")
	for what, want := range map[string][2]string{
		"now":        {s.listed(), "4: b=2 c=1"},
		"revision 1": {s.at(1), "a=1 b=2"},
		"revision 2": {s.at(2), "b=2 c=1"},
		"revision 3": {s.at(3), "unknown"},
		"revision 4": {s.at(4), "b=2 c=1"},
	} {
		if want[0] != want[1] {
			t.Errorf("%s: %q, want %q", what, want[0], want[1])
		}
	}
	if n := s.contents(); n != 3 {
		t.Errorf("%d contents, want 3: each once, without unused ones", n)
	}
}

func TestObjectsAreStoredCompletely(t *testing.T) {
	s := newFixture(t, 1)
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(3), "list": []any{"a", int64(1), 1.5, true, nil, map[string]any{}}},
	}}
	s.put(1, []*unstructured.Unstructured{want})
	got, _, err := s.List(t.Context(), alice.UID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*unstructured.Unstructured{want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStoredRevisions(t *testing.T) {
	s := newFixture(t, 2)
	check := func(listed string, contents int, revisions ...int64) {
		t.Helper()
		if got := s.revisions(); !slices.Equal(got, revisions) || s.listed() != listed || s.contents() != contents {
			t.Errorf("revisions %v, %q, %d contents; want %v, %q, %d", s.revisions(), s.listed(), s.contents(), revisions, listed, contents)
		}
	}
	for revision := range int64(4) {
		s.put(revision+1, settings(fmt.Sprintf("a=%d", revision+1), "b=1"))
	}
	check("4: a=4 b=1", 3, 3, 4)
	// A rollback applies a lower revision, which is the current one although higher ones exist.
	s.put(2, settings("a=2"))
	check("2: a=2 b=1", 4, 2, 3, 4)
	s.put(5, settings("a=5"))
	check("5: a=5 b=1", 3, 4, 5)
}

// TestBetweenRevisions checks that objects of a partly applied revision, or of a failed attempt, do not count as applied at the revision
// before.
func TestBetweenRevisions(t *testing.T) {
	s := newFixture(t, 2)
	s.put(1, settings("a=1", "b=1"))
	s.put(0, settings("a=2"))
	s.put(0, settings("c=2"), "b")
	for what, want := range map[string][2]string{
		"now":         {s.listed(), "0: a=2 c=2"},
		"revision 1":  {s.at(1), "a=1 b=1"},
		"no revision": {s.at(0), "unknown"},
	} {
		if want[0] != want[1] {
			t.Errorf("%s: %q, want %q", what, want[0], want[1])
		}
	}
	s.put(2, settings("b=2"))
	if got := s.revisions(); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("copies %v", got)
	}
	if now, n := s.listed(), s.contents(); now != "2: a=2 b=2 c=2" || s.at(1) != "a=1 b=1" || n != 5 {
		t.Errorf("copies %q, %d contents", now, n)
	}
	s.put(3, settings("a=3"))
	if s.at(1) != "unknown" || s.at(2) != "a=2 b=2 c=2" {
		t.Errorf("copies at revision 1 = %q, at revision 2 = %q", s.at(1), s.at(2))
	}
}

func TestEnvironmentsAreApart(t *testing.T) {
	s := newFixture(t, 2)
	other := copies.Environment{NamespacedName: alice.NamespacedName, UID: alice.UID + "0"}
	s.put(1, settings("a=1"))
	if err := s.Put(t.Context(), other, change(7, settings("a=7"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), other.UID); err != nil {
		t.Fatal(err)
	}
	if got := s.listed(); got != "1: a=1" {
		t.Errorf("got %q", got)
	}
	if err := s.Forget(t.Context(), alice.UID); err != nil {
		t.Fatal(err)
	}
	if rows := s.rows(); len(rows) > 0 {
		t.Errorf("rows that are left: %v", rows)
	}
}

func TestSweepDeletesCopiesOfDeletedEnvironments(t *testing.T) {
	s := newFixture(t, 2)
	deleted := copies.Environment{NamespacedName: alice.NamespacedName, UID: "of-before"}
	s.put(1, settings("a=1"))
	if err := s.Put(t.Context(), deleted, change(7, settings("a=7"))); err != nil {
		t.Fatal(err)
	}
	trouble := errors.New("the API is down")
	err := s.Sweep(t.Context(), func(context.Context, copies.Environment) (bool, error) { return false, trouble })
	if there, listErr := s.Environments(t.Context()); !errors.Is(err, trouble) || listErr != nil || len(there) != 2 {
		t.Fatalf("error %v, environments %v %v", err, there, listErr)
	}
	s.sweep()
	there, err := s.Environments(t.Context())
	if err != nil || !slices.Equal(there, []copies.Environment{alice}) || s.listed() != "1: a=1" || s.contents() != 1 {
		t.Errorf("environments %v, %v, %q, %d contents", there, err, s.listed(), s.contents())
	}
}

// sweep sweeps in a cluster with the environment alice only.
func (s *fixture) sweep() {
	s.Helper()
	err := s.Sweep(s.Context(), func(_ context.Context, environment copies.Environment) (bool, error) {
		return environment == alice, nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// TestDeathBetweenWrites has the process die at each of its writes: the store then has either the previous change or the complete new one,
// and after a retry the result is the same as without the death.
func TestDeathBetweenWrites(t *testing.T) {
	// The changes do not fit into one transaction.
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("many%03d=1", i))
	}
	for name, tt := range map[string]struct {
		change copies.Change
		writes int
	}{
		"many objects":       {change(3, settings(many...), "a"), 4},
		"an object":          {change(3, settings("a=3")), 2},
		"the same revision":  {change(2, settings("a=3")), 2},
		"a lower one":        {change(1, settings("a=3")), 2},
		"an object less":     {change(3, nil, "a"), 2},
		"what is there then": {change(3, settings("a=2")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			for last := 1; ; last++ {
				s := newFixture(t, 2)
				s.put(1, settings("a=1"))
				s.put(2, settings("a=2"))
				s.process.Start(last, nil)
				if s.Put(t.Context(), alice, tt.change) == nil {
					if last <= tt.writes {
						t.Errorf("%d writes", last-1)
					}
					break
				}
				s.process.Start(0, nil)
				between := s.listed()
				s.sweep()
				s.put(tt.change.Revision, tt.change.Applied, names(tt.change.Deleted)...)
				twin := newFixture(t, 2)
				twin.put(1, settings("a=1"))
				twin.put(2, settings("a=2"))
				before := twin.listed()
				twin.put(tt.change.Revision, tt.change.Applied, names(tt.change.Deleted)...)
				if between != before && between != twin.listed() {
					t.Errorf("copies after a death at write %d = %q", last, between)
				}
				s.sweep()
				if s.listed() != twin.listed() || s.at(1) != twin.at(1) || s.at(2) != twin.at(2) || s.contents() != twin.contents() {
					t.Errorf("copies after a death at write %d and a sweep: %q, 1: %q, 2: %q, %d contents, want %d",
						last, s.listed(), s.at(1), s.at(2), s.contents(), twin.contents())
				}
			}
		})
	}
}

func names(keys []copies.Key) []string {
	var out []string
	for _, key := range keys {
		out = append(out, key.Name)
	}
	return out
}

// TestForgettingIsRepeated has the process die at each write of Forget.
func TestForgettingIsRepeated(t *testing.T) {
	for last := 1; ; last++ {
		s := newFixture(t, 2)
		s.put(1, settings("a=1"))
		s.process.Start(last, nil)
		if s.Forget(t.Context(), alice.UID) == nil {
			return
		}
		s.process.Start(0, nil)
		if err := s.Sweep(t.Context(), func(context.Context, copies.Environment) (bool, error) { return false, nil }); err != nil {
			t.Fatal(err)
		}
		if rows := s.rows(); len(rows) > 0 {
			t.Errorf("rows after a death at write %d: %v", last, rows)
		}
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	s := newFixture(t, 2)
	var group errgroup.Group
	var want []string
	for i := range 8 {
		text := fmt.Sprintf("of%d=1", i)
		want = append(want, text)
		group.Go(func() error { return s.Put(t.Context(), alice, change(1, settings(text))) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := s.listed(); got != "1: "+strings.Join(want, " ") {
		t.Errorf("got %q", got)
	}
}

// TestMissingContent has another server delete the content of a head.
func TestMissingContent(t *testing.T) {
	s := newFixture(t, 2)
	s.put(1, settings("a=1", "b=1"))
	for key := range s.rows() {
		if strings.Contains(key, "/content/") {
			if _, err := s.kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if listed := s.listed(); listed != "1: a=1" && listed != "1: b=1" || s.at(1) != "unknown" {
		t.Errorf("copies = %q, at the revision = %q", listed, s.at(1))
	}
	s.put(1, settings("a=1", "b=1"))
	if s.listed() != "1: a=1 b=1" || s.at(1) != "a=1 b=1" {
		t.Errorf("copies after another put = %q, at the revision = %q", s.listed(), s.at(1))
	}
}

func TestHeadsThatCannotBeRead(t *testing.T) {
	s := newFixture(t, 2)
	s.put(1, settings("a=1"))
	s.put(2, settings("a=2"))
	table := storetable.New(s.kv, prefix).Table(copies.TableName)
	for row, err := range table.Scan(t.Context(), "head/") {
		if err == nil && strings.HasSuffix(row.Key, "2") {
			err = table.Put(t.Context(), storetable.Row{Key: row.Key, Value: []byte("[")})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.listed() != "2:" || s.at(2) != "unknown" || s.at(1) != "a=1" {
		t.Errorf("copies = %q, at the revisions = %q, %q", s.listed(), s.at(2), s.at(1))
	}
	s.put(2, settings("a=3"))
	if s.listed() != "2: a=3" {
		t.Errorf("copies after another put = %q", s.listed())
	}
}

// TestNothingOfSecretsIsInTheStore checks that rows contain no values of Secrets. They are encrypted with a key of the server.
func TestNothingOfSecretsIsInTheStore(t *testing.T) {
	home := encryption.Folder{Path: t.TempDir()}
	nothing := func(context.Context) (string, error) { return "", nil }
	if err := encryption.Ensure(t.Context(), home, nothing); err != nil {
		t.Fatal(err)
	}
	encrypter, err := encryption.Open(t.Context(), encryption.Config{Origin: home})
	if err != nil {
		t.Fatal(err)
	}
	kv := bolttest.NewKV(t)
	kept := copies.New(storetable.New(kv, prefix, storetable.WithTransformer(encrypter.Work())), 2)
	object := secret()
	if err := kept.Put(t.Context(), alice, change(1, []*unstructured.Unstructured{object})); err != nil {
		t.Fatal(err)
	}
	found, _, err := kept.List(t.Context(), alice.UID)
	if err != nil || !cmp.Equal(found, []*unstructured.Unstructured{object}) {
		t.Fatalf("listed %v, %v", found, err)
	}
	encoded, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(encoded)
	answer, err := kv.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil || len(answer.Kvs) != 4 {
		t.Fatalf("%v rows, %v", answer, err)
	}
	for _, row := range answer.Kvs {
		for _, hidden := range []string{
			password, base64.StdEncoding.EncodeToString([]byte(password)), "database", hex.EncodeToString(sum[:]), string(sum[:]),
		} {
			if strings.Contains(string(row.Key)+string(row.Value), hidden) {
				t.Errorf("%q is readable in row %s", hidden, row.Key)
			}
		}
	}
}
