// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// overtake has another writer push before every push of more than a number of Git objects, and counts those.
func (s *fixture) overtake(objects uint32) *atomic.Int32 {
	s.t.Helper()
	overtaken := &atomic.Int32{}
	s.git.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if !isPush(r) {
			return true
		}
		push, err := arrived(r)
		if err != nil {
			s.t.Error(err)
			return false
		}
		body, _ := io.ReadAll(push.Body)
		push.Body = io.NopCloser(bytes.NewReader(body))
		*r = *push
		// A pack begins with PACK, its version, and the number of its objects.
		if _, pack, found := bytes.Cut(body, []byte("PACK")); found && binary.BigEndian.Uint32(pack[4:]) > objects {
			s.commitTheirs("theirs", "theirs", fmt.Sprint(overtaken.Add(1)))
		}
		return true
	})
	return overtaken
}

// TestFewerChangesIfOthersAreFaster checks that pushes get smaller until they are faster than another writer.
func TestFewerChangesIfOthersAreFaster(t *testing.T) {
	const changes = 40
	s := newFixture(t, perChange)
	s.idle()
	s.cluster.put(configMap("first"), "1")
	s.mirrored()
	s.git.guard(down)
	for i := range changes {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	s.waitPending("main", changes)
	overtaken := s.overtake(10 * 8) // ten commits, each with its file and its folders
	s.mirrored()
	s.idle()
	if n := overtaken.Load(); n < 2 {
		t.Errorf("the other writer was faster %d times, want at least 2: 40 and 20 changes", n)
	}
	if got, want := len(s.commits("main")), 1+changes+int(overtaken.Load()); got != want {
		t.Errorf("%d commits, want %d", got, want)
	}
}

func TestFewerFilesOfAComparisonIfOthersAreFaster(t *testing.T) {
	const objects = 40
	s := newFixture(t)
	s.cluster.put(configMap("first"), "1")
	s.mirrored()
	s.idle()
	s.stop()
	for i := range objects {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	overtaken := s.overtake(20)
	s.start()
	s.mirrored()
	if overtaken.Load() == 0 {
		t.Error("no concurrent push was faster: the test is void")
	}
}

func TestRace(t *testing.T) {
	r := newRace()
	if got := r.bound(200); got != 200 {
		t.Errorf("limit before the first conflict = %d changes", got)
	}
	for _, want := range []int{100, 50, 25, 12, 6, 3, 1, 1} {
		r.carried = r.bound(200)
		r.lost()
		if got := r.bound(200); got != want {
			t.Fatalf("limit after a conflict = %d changes, want %d", got, want)
		}
	}
	for _, want := range []int{2, 3, 5, 8, 12} {
		r.won()
		if got := r.bound(200); got != want {
			t.Fatalf("limit after an accepted push = %d changes, want %d", got, want)
		}
	}
	for range 100 {
		r.won()
	}
	if got := r.bound(comparePartFiles); got != comparePartFiles {
		t.Errorf("final limit = %d changes", got)
	}
	r.lost() // no push was attempted
	if got := r.bound(200); got != 200 {
		t.Errorf("limit after a conflict without a push = %d changes", got)
	}
}
