// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// onBranch adds a destination on a branch, with a rule that selects the ConfigMaps of namespace shop.
func onBranch(name, branch, folder string) func(*fixture) {
	return func(s *fixture) {
		d := newTestDestination("shop", name, folder)
		d.Spec.Branch = branch
		s.in.repositories[0].Spec.AllowedBranches = []string{"*"}
		s.in.destinations = append(s.in.destinations, d)
		rule := s.in.rules[0].DeepCopy()
		rule.Name, rule.Spec.DestinationRef.Name = name, name
		s.in.rules = append(s.in.rules, rule)
	}
}

// ready returns the current condition Ready of a destination.
func (s *fixture) ready(name string) metav1.Condition {
	d := s.destination(name)
	for _, condition := range destinationConditions(d, s.publisher.failure(d), "", s.router.authors.reports(time.Now()), nil) {
		if condition.Type == v1alpha1.ConditionReady {
			return condition
		}
	}
	s.t.Fatalf("destination %s has no condition Ready", name)
	return metav1.Condition{}
}

func (s *fixture) record(name string) v1alpha1.GitDestinationRecord {
	d := s.destination(name)
	return newRecord(d, s.publisher.failure(d), s.registry.depth(d.plan.Load().branch), s.watching(d)).Status
}

// waitReady waits for a condition Ready with the reason.
func (s *fixture) waitReady(name, reason string) metav1.Condition {
	s.t.Helper()
	var ready metav1.Condition
	testkit.Eventually(s.t, "Ready with "+reason, func() error {
		if ready = s.ready(name); ready.Reason != reason {
			return fmt.Errorf("%s: %s", ready.Reason, ready.Message)
		}
		return nil
	})
	return ready
}

func TestRemoteDownInMidBurst(t *testing.T) {
	s := newFixture(t)
	s.idle()
	for i := range 50 {
		if i == 25 {
			s.git.guard(down)
		}
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	record := s.record("main")
	if record.PendingChanges == 0 || record.OldestPendingTime == nil || !strings.HasPrefix(record.State, "Retrying: ") ||
		record.LastError == "" {
		t.Errorf("record = %+v", record)
	}
	lists := s.cluster.listed()
	s.git.guard(nil)
	s.mirrored() // without an event that wakes the worker
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	if record := s.record("main"); record.PendingChanges != 0 || record.OldestPendingTime != nil || record.LastError != "" ||
		record.PushRetries == 0 {
		t.Errorf("record = %+v", record)
	}
	if again := s.cluster.listed() - lists; again != 0 {
		t.Errorf("cluster was listed %d times without other writers", again)
	}
}

func TestRemoteDownAtTheStart(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.git.guard(down)
		s.cluster.put(configMap("before"), "1")
	})
	s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	s.cluster.put(configMap("after"), "1")
	s.cluster.put(configMap("gone"), "1")
	s.cluster.remove(configMap("gone"))
	s.git.guard(nil)
	s.mirrored()
}

func TestRemoteThatDoesNotRespond(t *testing.T) {
	var silent atomic.Bool
	s := newFixture(t, func(s *fixture) { s.requestTimeout = 10 * time.Second })
	s.idle()
	silent.Store(true)
	s.git.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if silent.Load() {
			<-r.Context().Done()
		}
		return true
	})
	s.cluster.put(configMap("a"), "1")
	ready := s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	if !strings.Contains(ready.Message, "has not answered within 10s") {
		t.Errorf("message = %q", ready.Message)
	}
	silent.Store(false)
	s.mirrored()
}

func TestHookThatRefuses(t *testing.T) {
	s := newFixture(t, onBranch("other", "other", "b"))
	s.idle()
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.git.hook(t, "shop.git", "update", `case "$1" in */main) echo "main is frozen until Monday" >&2; exit 1;; esac`)
	s.cluster.put(configMap("b"), "1")
	ready := s.waitReady("main", v1alpha1.ReasonPushRejected)
	if !strings.Contains(ready.Message, "main is frozen until Monday") ||
		!strings.Contains(s.record("main").LastError, "main is frozen until Monday") {
		t.Errorf("message = %q, last error = %q", ready.Message, s.record("main").LastError)
	}
	s.holds("other", "b", inShop)
	s.waitReady("other", v1alpha1.ReasonSucceeded)
	testkit.EventuallyTrue(t, "a check of the repository is requested", func() bool { return s.rechecks.Load() > 0 })
	repository := nameOf(s.in.repositories[0])
	if v := s.registry.rejection(repository); v.Code != v1alpha1.ReasonPushRejected ||
		!strings.Contains(v.Message, "branch main: cannot push: ") ||
		!strings.Contains(v.Message, "main is frozen until Monday") {
		t.Errorf("state of the repository = %+v", v)
	}
	rechecks := s.rechecks.Load()
	s.git.hook(t, "shop.git", "update", "")
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	testkit.EventuallyTrue(t, "another check is requested, and the repository accepts pushes", func() bool {
		return s.rechecks.Load() > rechecks && s.registry.rejection(repository).IsZero()
	})
}

// otherWriter is a clone in which another writer commits to main. It pushes until the remote accepts.
type otherWriter struct {
	*fixture
	clone string
}

func (s *fixture) otherWriter() *otherWriter {
	clone := s.t.TempDir()
	s.mustRun("clone", "--quiet", "--branch=main", ".", clone)
	return &otherWriter{fixture: s, clone: clone}
}

func (o *otherWriter) git(arguments ...string) error {
	_, err := o.run(append([]string{"-C", o.clone}, arguments...)...)
	return err
}

// edit updates the clone, calls change with it, and pushes the result, until the push is not overtaken.
func (o *otherWriter) edit(message string, change func() error) error {
	for {
		if pushed, err := o.tryEdit(message, change); pushed || err != nil {
			return err
		}
	}
}

// tryEdit is one attempt of edit. It reports whether the push was accepted.
func (o *otherWriter) tryEdit(message string, change func() error) (pushed bool, err error) {
	for _, step := range []func() error{
		func() error { return o.git("fetch", "--quiet") },
		func() error { return o.git("reset", "--quiet", "--hard", "origin/main") },
		change,
		func() error { return o.git("add", "--all") },
		func() error { return o.git("commit", "--quiet", "--allow-empty", "--message="+message) },
	} {
		if err := step(); err != nil {
			return false, err
		}
	}
	err = o.git("push", "--quiet", "origin", "HEAD:main")
	if err != nil && (strings.Contains(err.Error(), "rejected") || strings.Contains(err.Error(), "failed to update ref") ||
		strings.Contains(err.Error(), "cannot lock ref")) {
		return false, nil
	}
	return err == nil, err
}

func (o *otherWriter) write(path, content string) func() error {
	return func() error { return writeFile(o.clone, path, content) }
}

// commitTheirs has another writer commit a file to main. It is a single short program, because tests call it before each of many pushes.
func (s *fixture) commitTheirs(subject, path, content string) {
	_, err := s.runWith(fmt.Sprintf("commit refs/heads/main\ncommitter b <b@example.com> now\ndata %d\n%s\nfrom refs/heads/main^0\n"+
		"M 100644 inline %s\ndata %d\n%s\n", len(subject), subject, path, len(content), content), "fast-import", "--quiet", "--date-format=now")
	if err != nil {
		s.t.Error(err)
	}
}

// TestAnotherWriterPushesAllTheTime has another writer be faster than two of three pushes.
func TestAnotherWriterPushesAllTheTime(t *testing.T) {
	const changes = 10
	s := newFixture(t, perChange)
	s.idle()
	s.cluster.put(configMap("first"), "1")
	s.mirrored()
	s.idle()
	var pushes, theirs atomic.Int64
	s.git.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if isPush(r) && pushes.Add(1)%3 != 0 {
			n := theirs.Add(1)
			s.commitTheirs(fmt.Sprintf("theirs %d", n), "theirs", fmt.Sprint(n))
		}
		return true
	})
	for i := range changes {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
		s.mirroredOne(configMap(fmt.Sprint(i)))
	}
	s.idle()
	if merges := s.mustRun("rev-list", "--min-parents=2", "main"); merges != "" {
		t.Errorf("merge commits: %s", merges)
	}
	subjects := s.commits("main")
	for i := range theirs.Load() {
		if !slices.Contains(subjects, fmt.Sprintf("theirs %d", i+1)) {
			t.Errorf("commit %d of %d of the other writer is lost", i+1, theirs.Load())
		}
	}
	if got, want := len(subjects), 1+changes+int(theirs.Load()); got != want {
		t.Errorf("%d commits, want %d", got, want)
	}
	if retries := s.record("main").PushRetries; retries != 2*changes {
		t.Errorf("%d retries, want %d", retries, 2*changes)
	}
}

// mirroredOne waits for the file of one object.
func (s *fixture) mirroredOne(o outbox.Object) {
	s.t.Helper()
	want := s.cluster.rendered(func(other outbox.Object) bool { return other == o })
	testkit.Eventually(s.t, o.String(), func() error {
		files, err := s.files("main")
		for path, hash := range want {
			if files["clusters/a/"+path] != hash {
				return fmt.Errorf("%s does not exist", path)
			}
		}
		return err
	})
}

func TestHistoryIsRewritten(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.mustRun("update-ref", "refs/heads/main", s.mustRun("rev-list", "--max-parents=0", "main"))
	s.cluster.put(configMap("c"), "1")
	s.mirrored()
	root := s.mustRun("commit-tree", "-m", "rewritten", s.mustRun("rev-parse", "main^{tree}"))
	s.mustRun("update-ref", "refs/heads/main", root)
	s.cluster.put(configMap("d"), "1")
	s.mirrored()
	if got := s.mustRun("rev-list", "--max-parents=0", "main"); got != root {
		t.Errorf("branch does not start with %s: the other writer's push was undone", root)
	}
	s.mustRun("update-ref", "-d", "refs/heads/main")
	s.cluster.put(configMap("e"), "1")
	s.mirrored()
}

func TestResponseToAPushIsLost(t *testing.T) {
	s := newFixture(t, perChange)
	s.idle()
	s.git.loseResponses.Store(1)
	for i := range 5 {
		s.cluster.put(configMap("a"), fmt.Sprint(i))
	}
	s.mirrored()
	s.idle()
	if s.record("main").PushRetries == 0 {
		t.Fatal("no response was lost")
	}
	s.eachChangeOnce(configMap("a"))
}

// eachChangeOnce fails if the history of a file has a content twice.
func (s *fixture) eachChangeOnce(o outbox.Object) {
	s.t.Helper()
	path := ""
	for path = range s.cluster.rendered(func(other outbox.Object) bool { return other == o }) {
	}
	var seen []string
	for line := range strings.Lines(s.mustRun("log", "--reverse", "--format=", "--raw", "--no-abbrev", "main", "--", "clusters/a/"+path)) {
		blob := strings.Fields(line)[3]
		if slices.Contains(seen, blob) {
			s.t.Errorf("%s: content %s was written twice:\n%s", o, blob, s.mustRun("log", "--reverse", "-p", "main"))
		}
		seen = append(seen, blob)
	}
}

func TestForeignEditsAreUndone(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	other := s.otherWriter()
	if err := other.edit("edit", func() error {
		for path, content := range map[string]string{
			"clusters/a/core/v1/configmaps/shop/a.yaml":     "edited",
			"clusters/a/core/v1/configmaps/shop/added.yaml": "added",
			"clusters/a/README.md":                          "ours",
			"theirs/core/v1/configmaps/shop/x.yaml":         "ours",
		} {
			if err := writeFile(other.clone, path, content); err != nil {
				return err
			}
		}
		return other.git("rm", "--quiet", "clusters/a/core/v1/configmaps/shop/b.yaml")
	}); err != nil {
		t.Fatal(err)
	}
	s.cluster.put(configMap("c"), "1") // the worker detects that the branch has moved
	testkit.Eventually(t, "the edits are undone", func() error {
		files, err := s.files("main")
		for path, hash := range s.cluster.rendered(inShop) {
			if files["clusters/a/"+path] != hash {
				return fmt.Errorf("%s is not restored", path)
			}
		}
		if _, ok := files["clusters/a/core/v1/configmaps/shop/added.yaml"]; ok {
			return fmt.Errorf("added file still exists")
		}
		for _, path := range []string{"clusters/a/README.md", "theirs/core/v1/configmaps/shop/x.yaml"} {
			if _, ok := files[path]; !ok {
				t.Fatalf("%s of another writer was removed", path)
			}
		}
		return err
	})
}
