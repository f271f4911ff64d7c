// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const thisMonth = "syncstatuses-2026-11-001.jsonl"

func TestSweep(t *testing.T) {
	elsewhere := func(r *v1alpha1.SyncStatus) { r.Namespace = "another" }
	ofEnvironment := func(r *v1alpha1.SyncStatus) {
		r.Spec.Type, r.Spec.Subject.Kind, r.Status.State = v1alpha1.SyncTypeEnvironment, v1alpha1.SubjectEnvironment, v1alpha1.SyncStateCompleted
	}
	keeping := func(number int32) func(*v1alpha1.Retention) {
		return func(r *v1alpha1.Retention) { r.KeepPerSubject = &number }
	}
	atMost := func(number int32) func(*v1alpha1.Retention) {
		return func(r *v1alpha1.Retention) { r.MaxPerSubject = &number }
	}
	tests := []struct {
		name    string
		policy  *v1alpha1.SyncPolicy
		records []runtime.Object
		goes    []string
		stays   []string
	}{
		{"no records", policy(), nil, nil, nil},
		{
			"old records", policy(), []runtime.Object{record("shop", "new", 89), record("shop", "old", 91), record("shop", "older", 200)},
			[]string{"teams/shop-older", "teams/shop-old"}, []string{"teams/shop-new"},
		},
		{
			"a record in need of intervention", policy(), []runtime.Object{record("shop", "a", 91), record("shop", "b", 200, failed)},
			[]string{"teams/shop-a"}, []string{"teams/shop-b"},
		},
		{
			"the newest of each catalog", policy(keeping(1)),
			[]runtime.Object{record("shop", "a", 91), record("shop", "b", 92), record("bank", "a", 93), record("bank", "b", 94, elsewhere)},
			[]string{"teams/shop-b"}, []string{"another/bank-b", "teams/bank-a", "teams/shop-a"},
		},
		{
			"more than the maximum", policy(atMost(1)), []runtime.Object{record("shop", "a", 1), record("shop", "b", 2)},
			[]string{"teams/shop-b"}, []string{"teams/shop-a"},
		},
		{
			"the newest of a deleted catalog", policy(keeping(5)), []runtime.Object{record("gone", "a", 91), record("gone", "b", 89)},
			[]string{"teams/gone-a"}, []string{"teams/gone-b"},
		},
		{
			"the newest of an environment", policy(keeping(1)),
			[]runtime.Object{record("alice", "a", 91, ofEnvironment), record("alice", "b", 92, ofEnvironment)},
			[]string{"teams/alice-b"}, []string{"teams/alice-a"},
		},
		{
			"records of a deleted environment", policy(keeping(5)),
			[]runtime.Object{
				record("gone", "a", 91, ofEnvironment), record("gone", "b", 92, ofEnvironment, failed), record("gone", "c", 89, ofEnvironment),
			},
			[]string{"teams/gone-b", "teams/gone-a"}, []string{"teams/gone-c"},
		},
		{
			"unsettled records of a deleted catalog", policy(),
			[]runtime.Object{
				record("gone", "a", 94, failed), record("gone", "b", 93, retrying), record("gone", "c", 92, awaiting), record("gone", "d", 89, failed),
				record("shop", "a", 94, failed), record("shop", "b", 93, retrying), record("shop", "c", 92, awaiting),
			},
			[]string{"teams/gone-a", "teams/gone-b", "teams/gone-c"}, []string{"teams/gone-d", "teams/shop-a", "teams/shop-b", "teams/shop-c"},
		},
		{
			"a recently retried record of a deleted catalog", policy(),
			[]runtime.Object{record("gone", "a", 94, failed, func(r *v1alpha1.SyncStatus) {
				r.Status.Error = &v1alpha1.SyncError{At: metav1.NewTime(today.AddDate(0, 0, -2))}
			})},
			nil, []string{"teams/gone-a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, append([]runtime.Object{tt.policy, catalog("shop"), catalog("bank"), environment("alice")}, tt.records...)...)
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.stays, s.remaining()); diff != "" {
				t.Errorf("in the API (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.goes, archivedNames(t, s.folder)); diff != "" {
				t.Errorf("in the archive (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithoutAPolicy checks the defaults: ten records of a subject are kept, and nothing is archived.
func TestWithoutAPolicy(t *testing.T) {
	s := newFixture(t, append(many(12), catalog("shop"))...)
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(s.remaining()); got != 10 {
		t.Errorf("%d records stay, want 10", got)
	}
	if _, err := os.Stat(s.folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an archive was created: %v", err)
	}
}

// TestArchivedRecord checks that an archived record equals that in the API, and that only the owner can read the file.
func TestArchivedRecord(t *testing.T) {
	want := record("shop", "a", 100, func(r *v1alpha1.SyncStatus) {
		r.Status.ChangedBy = []v1alpha1.SourceAuthor{{Username: "jane\nsmith"}}
		r.Status.ResolvedAt = ptr.To(metav1.NewTime(today.AddDate(0, 0, -99)))
	})
	s := newFixture(t, policy(), want)
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = want.DeepCopy()
	want.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"))
	if diff := cmp.Diff(map[string][]*v1alpha1.SyncStatus{thisMonth: {want}}, archived(t, s.folder)); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
	for path, mode := range map[string]fs.FileMode{s.folder: fs.ModeDir | 0o700, filepath.Join(s.folder, thisMonth): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want mode %v", path, info.Mode(), err, mode)
		}
	}
}

func TestRecordsAreArchivedBeforeTheyAreDeleted(t *testing.T) {
	s := newFixture(t, append(many(250), policy())...)
	deletions := 0
	s.client.PrependReactor("delete", resource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletions++
		name := "teams/" + action.(clienttesting.DeleteAction).GetName()
		if names := archivedNames(t, s.folder); !slices.Contains(names, name) {
			t.Errorf("%s is deleted but not in the archive, which has %d", name, len(names))
		}
		return false, nil, nil
	})
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := s.remaining(); deletions != 250 || len(left) > 0 {
		t.Errorf("%d deletions, %d records are left", deletions, len(left))
	}
}

// TestPace checks the pause after each hundred records, and the size of pages.
func TestPace(t *testing.T) {
	for name, policy := range map[string]*v1alpha1.SyncPolicy{"archived": policy(), "not archived": policy(unarchived)} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, append(many(1234), policy)...)
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := len(s.remaining()); left > 0 {
				t.Errorf("%d records are left", left)
			}
			if diff := cmp.Diff(slices.Repeat([]time.Duration{time.Second}, 13), s.clock.waits); diff != "" {
				t.Errorf("pauses (-want +got):\n%s", diff)
			}
			if s.largestPage > 500 {
				t.Errorf("a page has up to %d records", s.largestPage)
			}
		})
	}
}

// TestRecordsThatChangeMeanwhileStay updates a record during a sweep.
func TestRecordsThatChangeMeanwhileStay(t *testing.T) {
	for _, verb := range []string{"get", "delete"} {
		t.Run("before "+verb, func(t *testing.T) {
			s := newFixture(t, append(many(3), policy())...)
			written := record("shop", "00001", 100, func(r *v1alpha1.SyncStatus) {
				r.ResourceVersion, r.Status.State = "8", v1alpha1.SyncStateDismissed
			})
			s.client.PrependReactor(verb, resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return false, nil, s.client.Tracker().Update(resource, written.DeepCopy(), written.Namespace)
			})
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"teams/shop-00001"}, s.remaining()); diff != "" {
				t.Errorf("in the API (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecordsThatAreDeletedMeanwhile deletes a record during a sweep, which is not an error.
func TestRecordsThatAreDeletedMeanwhile(t *testing.T) {
	for _, verb := range []string{"get", "delete"} {
		t.Run("before "+verb, func(t *testing.T) {
			s := newFixture(t, append(many(3), policy())...)
			s.client.PrependReactor(verb, resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				_ = s.client.Tracker().Delete(resource, "teams", "shop-00001") // gone after the first time
				return false, nil, nil
			})
			if err := s.sweeper().Sweep(t.Context()); err != nil || len(s.remaining()) > 0 {
				t.Errorf("error %v, left %q", err, s.remaining())
			}
		})
	}
}

// TestRetentionChangesMeanwhile configures an archive, or a longer retention, during a sweep. It applies to all records that are not
// deleted yet.
func TestRetentionChangesMeanwhile(t *testing.T) {
	tests := []struct {
		name           string
		after          *v1alpha1.SyncPolicy
		left, archived int
	}{
		{"an archive", policy(), 0, 150},
		{"more days", policy(unarchived, func(r *v1alpha1.Retention) { r.Days = ptr.To[int32](3650) }), 150, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, append(many(250), policy(unarchived))...)
			deletions := 0
			s.client.PrependReactor("delete", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				if deletions++; deletions != 100 {
					return false, nil, nil
				}
				s.setPolicy(t, tt.after)
				return false, nil, nil
			})
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(s.remaining()); got != tt.left {
				t.Errorf("%d records stay, want %d", got, tt.left)
			}
			if got := len(archivedNames(t, s.folder)); got != tt.archived {
				t.Errorf("%d records are archived, want %d", got, tt.archived)
			}
		})
	}
}

func TestRecordsStayWithoutAnAvailableArchive(t *testing.T) {
	elsewhere := func(r *v1alpha1.Retention) { r.Archive = &v1alpha1.Archive{Type: "Tape"} }
	occupied := filepath.Join(t.TempDir(), "occupied")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, folder string
		policy       *v1alpha1.SyncPolicy
		want         string
	}{
		{"what another version of the server has", t.TempDir(), policy(elsewhere), "spec.retention.archive.type of the SyncPolicy is Tape"},
		{"no folder", "", policy(), "spec.retention.archive of the SyncPolicy wants files, and this server has no folder for them"},
		{"a folder in none", filepath.Join(t.TempDir(), "a", "b"), policy(), "no such file or directory"},
		{"a file in the way", occupied, policy(), "occupied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixtureIn(tt.folder, append(many(3), tt.policy)...)
			s.expectUnavailable(t, tt.want)
			if got := len(s.remaining()); got != 3 {
				t.Errorf("%d records stay, want 3", got)
			}
			newFixtureIn(tt.folder, tt.policy).expectUnavailable(t, tt.want)
			s.setPolicy(t, policy(unarchived))
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			conditions := s.policyStatus(t).Conditions
			if len(conditions) != 1 || !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) || len(s.remaining()) > 0 {
				t.Errorf("without an archive: left %q, conditions %v", s.remaining(), conditions)
			}
		})
	}
}

// expectUnavailable sweeps, and checks that the archive is reported as unavailable, also without expired records.
func (s *fixture) expectUnavailable(t *testing.T, why string) {
	t.Helper()
	if err := s.sweeper().Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("error = %v, want %q in it", err, why)
	}
	ready := meta.FindStatusCondition(s.policyStatus(t).Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonArchiveUnavailable || !strings.Contains(ready.Message, why) {
		t.Errorf("Ready = %v, want %q in it", ready, why)
	}
}

func TestPolicyStatus(t *testing.T) {
	wanted := policy()
	wanted.Generation = 4
	s := newFixture(t, append(many(5), wanted, record("shop", "new", 1))...)
	s.client.PrependReactor("delete", resource.Resource, failOnce("shop-00003"))
	if err := s.sweeper().Sweep(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(v1alpha1.SyncPolicyStatus{Records: 3, RecordsExpired: 3, RecordsArchived: 5}, s.policyStatus(t)); diff != "" {
		t.Errorf("after a failed sweep (-want +got):\n%s", diff)
	}
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := metav1.NewTime(today)
	want := v1alpha1.SyncPolicyStatus{
		Records: 1, RecordsExpired: 5, RecordsArchived: 5, LastRetentionTime: &last, ObservedGeneration: 4,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 4,
			Reason: v1alpha1.ReasonSucceeded, Message: "The settings are in force",
		}},
	}
	status := s.policyStatus(t)
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("after a successful sweep (-want +got):\n%s", diff)
	}
}

func TestPolicyStatusWithoutAnArchive(t *testing.T) {
	s := newFixture(t, append(many(5), policy(unarchived), record("shop", "new", 1))...)
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := s.policyStatus(t)
	if status.Records != 1 || status.RecordsExpired != 5 || status.RecordsArchived != 0 {
		t.Errorf("%d records are left, %d were deleted, %d of them archived; want 1, 5, 0", status.Records, status.RecordsExpired,
			status.RecordsArchived)
	}
}

// policyStatus returns the status of the SyncPolicy.
func (s *fixture) policyStatus(t *testing.T) v1alpha1.SyncPolicyStatus {
	t.Helper()
	policy, err := s.client.ConfigbutlerV1alpha1().SyncPolicies().Get(t.Context(), v1alpha1.SyncPolicyName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Status
}

// failOnce fails the first deletion of a record.
func failOnce(name string) clienttesting.ReactionFunc {
	failed := false
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if failed || action.(clienttesting.DeleteAction).GetName() != name {
			return false, nil, nil
		}
		failed = true
		return true, nil, fmt.Errorf("no answer")
	}
}
