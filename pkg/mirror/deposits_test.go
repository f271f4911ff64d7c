// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

const (
	depositPath = "archive/2026/11/records.jsonl"
	depositFile = "clusters/a/.configbutler/" + depositPath
	depositText = "{\"kind\":\"SyncStatus\"}\n"
)

var mainDestination = types.NamespacedName{Namespace: "shop", Name: "main"}

// admitting has the destination accept deposits.
func admitting(s *fixture) {
	s.deposits = NewDeposits()
	s.in.allowClusterRules()
}

// write writes the file of these tests, until the process ends.
func (s *fixture) write() error {
	ctx, cancel := context.WithTimeout(s.ctx, testkit.Timeout)
	defer cancel()
	return s.deposits.Write(ctx, mainDestination, depositPath, []byte(depositText), "[ARCHIVE] 1 record")
}

// mustWrite writes the file and checks that the remote has it, by one commit, in a valid repository.
func (s *fixture) mustWrite() {
	s.t.Helper()
	testkit.Eventually(s.t, "the file is taken", s.write)
	if got := s.mustRun("show", "main:"+depositFile); got != strings.TrimSpace(depositText) {
		s.t.Errorf("content of the file = %q", got)
	}
	if commits := strings.Fields(s.mustRun("log", "--format=%H", "main", "--", depositFile)); len(commits) != 1 {
		s.t.Errorf("%d commits change the file", len(commits))
	}
	// While Git stores a push, fsck may find a commit that is not stored yet.
	testkit.Eventually(s.t, "the repository is intact", func() error {
		_, err := s.run("fsck", "--strict")
		return err
	})
}

func TestDeposit(t *testing.T) {
	s := newFixture(t, admitting)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	for range 3 {
		s.mustWrite()
	}
	message := s.mustRun("log", "-1", "--format=%an <%ae> %s%n%(trailers:only)", "main", "--", depositFile)
	for _, want := range []string{
		"Slipstream <slipstream@configbutler.ai> [ARCHIVE] 1 record",
		"X-ConfigButler-Destination: shop/main", "X-ConfigButler-Operation: DEPOSIT",
		"X-ConfigButler-InstanceID: one",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("commit message = %q, want %q in it", message, want)
		}
	}
}

// TestDepositsStay checks that deposits are not removed as orphans.
func TestDepositsStay(t *testing.T) {
	for name, then := range map[string]func(*fixture){
		"everything is compared":      func(s *fixture) { s.compareAgain() },
		"another process takes over":  func(s *fixture) { s.stop(); s.start() },
		"nothing is selected anymore": func(s *fixture) { s.in.rules = nil; s.plan() },
		"the namespace empties":       func(s *fixture) { s.cluster.remove(configMap("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, admitting)
			s.cluster.put(configMap("a"), "1")
			s.mirrored()
			s.idle()
			s.mustWrite()
			then(s)
			s.cluster.put(configMap("b"), "1")
			if len(s.in.rules) > 0 {
				s.mirrored()
			} else {
				s.holds("main", "clusters/a", func(outbox.Object) bool { return false })
			}
			s.idle()
			s.mustWrite()
		})
	}
}

// TestDepositIsTheFirstFile checks that the commit of the first file has the marker, also if the folder is the whole repository.
func TestDepositIsTheFirstFile(t *testing.T) {
	s := newFixture(t, admitting, func(s *fixture) {
		s.in.rules = nil
		s.in.destinations[0].Spec.BaseFolder = ""
	})
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	if got := s.mustRun("ls-tree", "-r", "--name-only", "main"); got != ".configbutler/"+depositPath+"\n"+markerPath {
		t.Errorf("files of the branch = %q", got)
	}
}

// edited replaces the destination by a changed copy, as informers do, because a worker may use the previous object.
func edited(change func(*v1alpha1.GitDestination)) func(*fixture) {
	return func(s *fixture) {
		d := s.in.destinations[0].DeepCopy()
		change(d)
		s.in.destinations = []*v1alpha1.GitDestination{d}
		s.plan()
	}
}

// TestDestinationsThatTakeNoDeposit checks that a deposit that the destination does not accept fails at once with the reason, and succeeds
// once the reason is removed.
func TestDestinationsThatTakeNoDeposit(t *testing.T) {
	admits := func(yes bool) func(*fixture) {
		return edited(func(d *v1alpha1.GitDestination) { d.Spec.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: yes} })
	}
	owned := func(yes bool) func(*fixture) {
		return func(s *fixture) {
			r := s.in.repositories[0].DeepCopy()
			r.Spec.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: yes}
			s.in.repositories = []*v1alpha1.GitRepoConfig{r}
			s.plan()
		}
	}
	named := func(name string) func(*fixture) {
		return edited(func(d *v1alpha1.GitDestination) { d.Name = name })
	}
	suspended := func(yes bool) func(*fixture) {
		return edited(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = yes })
	}
	onto := func(branch string) func(*fixture) {
		return edited(func(d *v1alpha1.GitDestination) { d.Spec.Branch = branch })
	}
	guarded := func(door func(http.ResponseWriter, *http.Request) bool) func(*fixture) {
		return func(s *fixture) { s.git.guard(door) }
	}
	hooked := func(script string) func(*fixture) {
		return func(s *fixture) { s.git.hook(s.t, "shop.git", "update", script) }
	}
	tests := map[string]struct {
		refuse func(*fixture)
		why    string
		relent func(*fixture)
	}{
		"no such":      {named("other"), "there is no GitDestination shop/main", named("main")},
		"not admitted": {admits(false), "GitDestination shop/main does not admit", admits(true)},
		"not by the repository": {
			owned(false), "GitRepoConfig shop/repo, the repository of GitDestination shop/main, does not admit what is in no namespace: " +
				"its spec.accessPolicy.allowClusterRules must be true", owned(true),
		},
		"suspended":      {suspended(true), "is suspended", suspended(false)},
		"no such branch": {onto("prod"), `"prod"`, onto("main")},
		"down":           {guarded(down), "GitDestination shop/main: ", guarded(nil)},
		"protected":      {hooked(`echo "main is frozen" >&2; exit 1`), "main is frozen", hooked("")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, admitting)
			s.cluster.put(configMap("a"), "1")
			s.mirrored()
			s.idle()
			before := s.mustRun("rev-parse", "main")
			tt.refuse(s)
			if err := s.write(); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("error = %v, want %q in it", err, tt.why)
			}
			if now := s.mustRun("rev-parse", "main"); now != before {
				t.Error("branch was written")
			}
			tt.relent(s)
			s.mustWrite()
		})
	}
}

// TestDepositThatWaits checks that a deposit that waits for a slow remote fails with the reason once its destination accepts none.
func TestDepositThatWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fixture)
		why    string
	}{
		"deleted": {func(s *fixture) { s.in.destinations = nil; s.plan() }, "GitDestination shop/main has been deleted"},
		"replaced": {
			edited(func(d *v1alpha1.GitDestination) { d.UID = "another" }), "GitDestination shop/main has been deleted",
		},
		"suspended":    {edited(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true }), "is suspended"},
		"not in force": {edited(func(d *v1alpha1.GitDestination) { d.Spec.Branch = "prod" }), `"prod"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, admitting)
			s.cluster.put(configMap("a"), "1")
			s.mirrored()
			s.idle()
			respond := make(chan struct{})
			t.Cleanup(func() { close(respond) })
			s.git.guard(func(w http.ResponseWriter, _ *http.Request) bool { <-respond; return breakOff(w) })
			result := make(chan error, 1)
			go func() { result <- s.write() }()
			d := s.destination("main")
			testkit.EventuallyTrue(t, "the deposit waits", func() bool { return len(d.deposits.pending()) == 1 })
			tt.change(s)
			if err := <-result; err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("error = %v, want %q in it", err, tt.why)
			}
		})
	}
}

// TestDepositInAFolderOfAnother checks that a destination with exclusiveMode writes no deposit to a folder of another owner.
func TestDepositInAFolderOfAnother(t *testing.T) {
	theirs, err := renderMarker(v1alpha1.OwnerMarker{ClusterUID: "another", Namespace: "theirs", Name: "main", Instance: "system/one"})
	if err != nil {
		t.Fatal(err)
	}
	s := newFixture(t, admitting, claimedBy(string(theirs), exclusive))
	before := s.mustRun("rev-parse", "main")
	if err := s.write(); err == nil || !strings.Contains(err.Error(), "of the cluster another") {
		t.Errorf("error %v", err)
	}
	if now := s.mustRun("rev-parse", "main"); now != before {
		t.Error("branch was written")
	}
}

// TestDepositAfterFaults checks that a file that is written again until it is accepted is in exactly one commit, whatever fails.
func TestDepositAfterFaults(t *testing.T) {
	faults := map[string]func(*fixture){
		"an answer is lost": func(s *fixture) {
			s.git.loseResponses.Store(1)
			_ = s.write()
		},
		"a push lands late": func(s *fixture) {
			received := s.git.landLate()
			_ = s.write()
			<-received
		},
		"a push lands late, and the process has died": func(s *fixture) {
			received := s.git.landLate()
			_ = s.write()
			<-received
			s.stop()
			s.start()
		},
		"after the caller has given up": func(s *fixture) {
			ctx, giveUp := context.WithCancel(s.ctx)
			s.git.guard(down)
			giveUp()
			// It may have succeeded before it is withdrawn: without a file there is nothing to push.
			if err := s.deposits.Write(ctx, mainDestination, depositPath, nil, ""); err != nil && !errors.Is(err, context.Canceled) {
				s.t.Errorf("error %v", err)
			}
			s.git.guard(nil)
		},
		"others push": func(s *fixture) {
			other := s.otherWriter()
			for i := range 5 {
				if err := errors.Join(s.write(), other.edit("theirs", other.write("README.md", fmt.Sprint(i)))); err != nil {
					s.t.Error(err)
				}
			}
		},
	}
	for _, moment := range []string{"before put pushes", "after put pushes", "before push", "after push"} {
		faults["death "+moment] = func(s *fixture) {
			died := s.process.killAt(moment, 1)
			if err := s.write(); err == nil {
				s.t.Error("dead process reports that the file was written")
			}
			<-died
			s.stop()
			s.start()
		}
	}
	for name, strike := range faults {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, admitting, perChange)
			s.burst("before", 10)
			s.mirrored()
			s.idle()
			strike(s)
			s.mustWrite()
			s.burst("after", 10)
			s.mirrored()
			s.idle()
			s.mustWrite()
			for i := range 10 {
				s.eachChangeOnce(configMap(fmt.Sprint(i)))
			}
		})
	}
}
