// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus/retention"
	"github.com/configbutler/slipstream/test/testkit"
)

// branch is the branch of the GitDestination ops/records.
type branch struct {
	mu    sync.Mutex
	files map[string]string
	// writes is the number of writes that have changed something.
	writes int
	// writeErr fails writes. answerErr is returned for writes that succeed.
	writeErr, answerErr error
	// checkErr is returned by Check.
	checkErr error
}

var _ retention.Git = &branch{}

func (b *branch) Check(_ context.Context, destination types.NamespacedName) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if destination.String() != "ops/records" {
		return fmt.Errorf("there is no GitDestination %s", destination)
	}
	return b.checkErr
}

func (b *branch) Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, _ string) error {
	if err := b.Check(ctx, destination); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writeErr != nil {
		return b.writeErr
	}
	if b.files[path] != string(content) {
		b.files[path] = string(content)
		b.writes++
	}
	return b.answerErr
}

// setErrors sets the errors of later writes.
func (b *branch) setErrors(down, lost error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeErr, b.answerErr = down, lost
}

// versions returns the records in the branch, as name@resourceVersion.
func (b *branch) versions(t *testing.T) (versions []string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		for text := range strings.Lines(b.files[path]) {
			record := &v1alpha1.SyncStatus{}
			if err := json.Unmarshal([]byte(text), record); err != nil {
				t.Fatalf("%s: %v in %.200q", path, err, text)
			}
			versions = append(versions, record.Name+"@"+record.ResourceVersion)
		}
	}
	slices.Sort(versions)
	return versions
}

// has reports whether the branch has a record.
func (b *branch) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, content := range b.files {
		if strings.Contains(content, `"name":"`+name+`"`) {
			return true
		}
	}
	return false
}

// expectOnlyArchived checks for each deletion that the branch has the record.
func (s *gitFixture) expectOnlyArchived(t *testing.T) {
	s.client.PrependReactor("delete", resource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if name := action.(clienttesting.DeleteAction).GetName(); !s.branch.has(name) {
			t.Errorf("%s is deleted but not in the branch", name)
		}
		return false, nil, nil
	})
}

// gitFixture is a fixture whose archive is a branch.
type gitFixture struct {
	*fixture
	*branch
	kv clientv3.KV
}

func newGitFixture(t *testing.T, objects ...runtime.Object) *gitFixture {
	t.Helper()
	s := &gitFixture{fixture: newFixture(t, objects...), branch: &branch{files: map[string]string{}}}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return s.process.Write(write.Commit) })
	return s
}

// Write writes to the branch.
func (s *gitFixture) Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, subject string) error {
	return s.process.Write(func() error { return s.branch.Write(ctx, destination, path, content, subject) })
}

func (s *gitFixture) config() retention.Config { return retention.Config{Git: s, Period: time.Hour} }

// server returns what controllers of a new process share.
func (s *gitFixture) server() *controller.Process {
	return &controller.Process{Client: s.client, Clock: s.clock, Store: table.New(s.kv, "/test")}
}

// sweeper returns the sweeper of a new process.
func (s *gitFixture) sweeper() *retention.Sweeper { return retention.New(s.config(), s.server()) }

func inGit(r *v1alpha1.Retention) {
	r.Archive = &v1alpha1.Archive{
		Type: v1alpha1.ArchiveGitDestination, DestinationRef: &v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "records"},
	}
}

// wanted returns the versions of the records of many.
func wanted(number int) (versions []string) {
	for i := range number {
		versions = append(versions, fmt.Sprintf("shop-%05d@7", i))
	}
	return versions
}

// expectArchived checks that the records are in the branch, each once, and no longer in the API.
func (s *gitFixture) expectArchived(t *testing.T, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, s.branch.versions(t)); diff != "" {
		t.Errorf("in the branch (-want +got):\n%s", diff)
	}
	if left := s.remaining(); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

var pathPattern = regexp.MustCompile(`^archive/2026/11/syncstatuses-20261121T180000Z-[0-9a-f]{12}\.jsonl$`)

func TestArchiveInGit(t *testing.T) {
	s := newGitFixture(t, append(many(250), policy(inGit), record("shop", "new", 1))...)
	s.expectOnlyArchived(t)
	for range 2 {
		if err := s.sweeper().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(wanted(250), s.branch.versions(t)); diff != "" {
		t.Errorf("in the branch (-want +got):\n%s", diff)
	}
	if left := s.remaining(); !slices.Equal(left, []string{"teams/shop-new"}) {
		t.Errorf("left %q", left)
	}
	for path := range s.branch.files {
		if !pathPattern.MatchString(path) {
			t.Errorf("a file is called %s", path)
		}
	}
	if status := s.policyStatus(t); len(s.branch.files) != 3 || s.branch.writes != 3 || status.RecordsArchived != 250 ||
		status.RecordsExpired != 250 {
		t.Errorf("%d files, %d writes, status %+v", len(s.branch.files), s.branch.writes, status)
	}
}

// TestLargeRecordsInGit has records that are too large for one file.
func TestLargeRecordsInGit(t *testing.T) {
	large := func(r *v1alpha1.SyncStatus) {
		r.Status.WorkloadNames = slices.Repeat([]string{strings.Repeat("w", 250)}, 1600)
	}
	s := newGitFixture(t, append(many(5, large), policy(inGit))...)
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expectArchived(t, wanted(5))
	if len(s.branch.files) != 5 {
		t.Errorf("%d files, want 5", len(s.branch.files))
	}
}

// TestGitThatCannotBeWritten checks that records stay until the branch has them, and that it has them once, although records have changed
// since.
func TestGitThatCannotBeWritten(t *testing.T) {
	tests := map[string]struct{ down, lost error }{
		"down":              {down: errors.New("no route to host\u202e")},
		"failing responses": {lost: errors.New("no route to host")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newGitFixture(t, append(many(150), policy(inGit))...)
			s.branch.setErrors(tt.down, tt.lost)
			for range 3 {
				if err := s.sweeper().Sweep(t.Context()); err == nil {
					t.Fatal("no error")
				}
			}
			ready := meta.FindStatusCondition(s.policyStatus(t).Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != v1alpha1.ReasonArchiveUnavailable || !strings.Contains(ready.Message, "no route to host") ||
				strings.Contains(ready.Message, "\u202e") {
				t.Errorf("Ready = %v", ready)
			}
			if len(s.remaining()) != 150 || s.policyStatus(t).RecordsArchived != 0 {
				t.Errorf("%d records are left, status %+v", len(s.remaining()), s.policyStatus(t))
			}
			for i := range 3 { // before all others
				if err := s.client.Tracker().Add(record("shop", fmt.Sprintf("-later-%d", i), 100)); err != nil {
					t.Fatal(err)
				}
			}
			s.branch.setErrors(nil, nil)
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.expectArchived(t, append([]string{"shop--later-0@7", "shop--later-1@7", "shop--later-2@7"}, wanted(150)...))
			if status := s.policyStatus(t); status.RecordsArchived != 153 ||
				!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
				t.Errorf("status %+v", status)
			}
		})
	}
}

// TestRecordThatChangesAfterItIsInGit checks that a record that has changed since it was archived is archived again.
func TestRecordThatChangesAfterItIsInGit(t *testing.T) {
	s := newGitFixture(t, append(many(3), policy(inGit))...)
	s.branch.setErrors(nil, errors.New("no answer"))
	if err := s.sweeper().Sweep(t.Context()); err == nil {
		t.Fatal("no error")
	}
	written := record("shop", "00001", 100, func(r *v1alpha1.SyncStatus) { r.ResourceVersion = "8" })
	if err := s.client.Tracker().Update(resource, written, written.Namespace); err != nil {
		t.Fatal(err)
	}
	s.branch.setErrors(nil, nil)
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expectArchived(t, []string{"shop-00000@7", "shop-00001@7", "shop-00001@8", "shop-00002@7"})
}

func TestDestinationThatRejectsFiles(t *testing.T) {
	elsewhere := func(r *v1alpha1.Retention) {
		inGit(r)
		r.Archive.DestinationRef.Name = "other"
	}
	tests := map[string]struct {
		policy  *v1alpha1.SyncPolicy
		refused error
		want    string
	}{
		"not there":    {policy(elsewhere), nil, "there is no GitDestination ops/other"},
		"not admitted": {policy(inGit), errors.New("it does not admit it"), "it does not admit it"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, objects := range [][]runtime.Object{append(many(3), tt.policy), {tt.policy}} {
				s := newGitFixture(t, objects...)
				s.branch.checkErr = tt.refused
				before := len(s.remaining())
				if err := s.sweeper().Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q in it", err, tt.want)
				}
				ready := meta.FindStatusCondition(s.policyStatus(t).Conditions, v1alpha1.ConditionReady)
				if ready == nil || ready.Reason != v1alpha1.ReasonArchiveUnavailable || !strings.Contains(ready.Message, tt.want) {
					t.Errorf("Ready = %v, want %q in it", ready, tt.want)
				}
				if len(s.remaining()) != before || s.branch.writes > 0 {
					t.Errorf("%d records are left, %d writes", len(s.remaining()), s.branch.writes)
				}
			}
		})
	}
}

// TestGitIsRetriedSoon has a remote that is available again long before the next sweep is due.
func TestGitIsRetriedSoon(t *testing.T) {
	s := newGitFixture(t, append(many(3), policy(inGit))...)
	s.branch.setErrors(errors.New("no route to host"), nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s.config(), s.server()) }()
	s.waitForStatus(t, func(status v1alpha1.SyncPolicyStatus) bool { return len(status.Conditions) > 0 })
	s.branch.setErrors(nil, nil)
	const tickerAndRetry = 2
	testkit.EventuallyTrue(t, "the ticker and the retry wait", func() bool { return s.clock.Waiters() == tickerAndRetry })
	s.clock.Step(time.Minute)
	s.waitForStatus(t, func(status v1alpha1.SyncPolicyStatus) bool { return status.RecordsExpired == 3 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.expectArchived(t, wanted(3))
}

// TestCrashAtEachWriteToGit crashes a process before and after each of its writes to the work store and to the branch, and before
// deletions. After the next process the branch has each record once, and no record was deleted that the branch does not have.
func TestCrashAtEachWriteToGit(t *testing.T) {
	const records = 103 // two batches
	for _, responseLost := range []bool{false, true} {
		for write, crashed := 1, true; crashed; write++ {
			s := newGitFixture(t, append(many(records), policy(inGit))...)
			ctx, kill := context.WithCancel(t.Context())
			s.expectOnlyArchived(t)
			s.process.LoseResponse(responseLost)
			s.process.Start(write, kill)
			err := s.sweeper().Sweep(ctx)
			crashed = s.process.Alive() != nil
			if crashed == (err == nil) {
				t.Fatalf("at write %d, response lost %t: crashed is %t, error %v", write, responseLost, crashed, err)
			}
			kill()
			if err := s.client.Tracker().Add(record("shop", "-later", 100)); err != nil { // before all others
				t.Fatal(err)
			}
			s.process.Start(0, nil)
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.expectArchived(t, append([]string{"shop--later@7"}, wanted(records)...))
			if write > 6 && write < records-4 {
				write = records - 4 // between deletions of one batch nothing is different
			}
		}
	}
}
