// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// outage is how long the remote is unreachable in TestFaults.
var outage = flag.Duration("outage", time.Second, "how long the remote is down in the middle of changes")

// burst changes ten objects in turn, each time to a new content.
func (s *fixture) burst(name string, changes int) {
	for i := range changes {
		s.cluster.put(configMap(fmt.Sprint(i%10)), fmt.Sprintf("%s %d", name, i))
	}
}

// theirFiles are files of other writers, beside the destination's folder and in it.
var theirFiles = []string{"README.md", "clusters/a/NOTES.txt", "clusters/b/core/v1/configmaps/shop/x.yaml"}

// TestFaults injects each fault between two bursts. Afterwards Git must equal the cluster, the files of other writers must be unchanged,
// and no change may be committed twice.
func TestFaults(t *testing.T) {
	for name, strike := range map[string]func(*fixture, *otherWriter){
		"remote down, and no event after": func(s *fixture, _ *otherWriter) {
			s.git.guard(down)
			s.burst("while down", 50)
			<-time.After(*outage)
			s.git.guard(nil)
		},
		"hook refuses": func(s *fixture, _ *otherWriter) {
			s.git.hook(s.t, "shop.git", "pre-receive", "exit 1")
			s.burst("refused", 50)
			s.waitReady("main", v1alpha1.ReasonPushRejected)
			s.git.hook(s.t, "shop.git", "pre-receive", "")
		},
		"others push": func(s *fixture, other *otherWriter) {
			for i := range 10 {
				s.burst(fmt.Sprint("beside theirs ", i), 5)
				if err := other.edit("theirs", other.write("counter", fmt.Sprint(i))); err != nil {
					s.t.Error(err)
				}
			}
		},
		"history rewritten": func(s *fixture, _ *otherWriter) {
			s.mustRun("update-ref", "refs/heads/main", s.mustRun("commit-tree", "-m", "rewritten", s.mustRun("rev-parse", "main^{tree}")))
		},
		"process killed": func(s *fixture, _ *otherWriter) {
			died := s.process.killAt("after push", 1)
			s.burst("killed", 50)
			<-died
			s.stop()
			s.start()
		},
		"deleted while stopped": func(s *fixture, _ *otherWriter) {
			s.stop()
			s.cluster.remove(configMap("3"))
			s.start()
		},
		"watch expired": func(s *fixture, _ *otherWriter) {
			s.cluster.unfollow()
			s.burst("unread", 50)
			s.cluster.remove(configMap("4"))
			s.plan() // lists and watches again
		},
		"credentials rotated": func(s *fixture, _ *otherWriter) {
			s.git.require("bot", "new")
			s.burst("locked out", 50)
			s.waitReady("main", v1alpha1.ReasonAuthenticationFailed)
			s.putSecret("git", map[string][]byte{"username": []byte("bot"), "password": []byte("new")})
		},
		"disk full": func(s *fixture, _ *otherWriter) {
			s.kv.fail(bolt.ErrDiskFull)
			s.burst("full", 50)
			testkit.Eventually(s.t, "a write that fails", func() error {
				if s.kv.failures.Load() == 0 {
					return bolt.ErrDiskFull
				}
				return nil
			})
			s.kv.fail(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, perChange, pollOften, func(s *fixture) {
				s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
				s.putSecret("git", map[string][]byte{"username": []byte("bot"), "password": []byte("old")})
			})
			other := s.addTheirs()
			s.burst("before", 20)
			strike(s, other)
			s.mirrored()
			s.idle()
			s.unharmed()
		})
	}
}

// addTheirs pushes files to the branch as another writer.
func (s *fixture) addTheirs() *otherWriter {
	s.t.Helper()
	s.cluster.put(configMap("first"), "1")
	s.mirrored()
	other := s.otherWriter()
	for _, path := range theirFiles {
		if err := other.edit("theirs", other.write(path, "theirs")); err != nil {
			s.t.Fatal(err)
		}
	}
	return other
}

// unharmed fails if files of other writers have changed, or a change was committed twice.
func (s *fixture) unharmed() {
	s.t.Helper()
	files, err := s.files("main")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range theirFiles {
		if _, ok := files[path]; !ok {
			s.t.Errorf("%s was removed", path)
		}
	}
	for i := range 10 {
		s.eachChangeOnce(configMap(fmt.Sprint(i)))
	}
	trees := strings.Fields(s.mustRun("log", "--format=%T", "main"))
	if n := len(slices.Compact(slices.Clone(trees))); n != len(trees) {
		s.t.Errorf("%d commits have no change", len(trees)-n)
	}
	if merges := s.mustRun("rev-list", "--min-parents=2", "main"); merges != "" {
		s.t.Errorf("merge commits: %s", merges)
	}
}
