// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/testkit"
)

// beginBoth prepares a cluster that lacks three objects, and returns two records that are executed together.
func (s *executorFixture) beginBoth() []*v1alpha1.SyncStatus {
	c := &cluster{executorFixture: s, holds: map[string]bool{}}
	s.run = func(ctx context.Context, request syncer.Request) (syncer.Result, error) {
		return c.sync(ctx, request, []string{"ConfigMap", "Deployment", "Secret"})
	}
	return []*v1alpha1.SyncStatus{s.begin(v1alpha1.SyncTypeEnvironment), s.begin(v1alpha1.SyncTypeDependency)}
}

// TestExecutorDeath has the process die at each write, of records and of objects, and another one execute the unfinished records.
func TestExecutorDeath(t *testing.T) {
	s := newExecutorFixture(t)
	s.mustDo(syncer.ModeSync, s.beginBoth()...)
	// The writes are those of two records, each of which starts, gets a plan, has progress three times and ends, and three objects.
	writes := s.api.Process.Writes()
	if writes != 2+2+2*3+2+3 {
		t.Fatalf("%d writes", writes)
	}
	for last := 1; last <= writes; last++ {
		t.Run(fmt.Sprintf("at write %d of %d", last, writes), func(t *testing.T) {
			s := newExecutorFixture(t)
			records := s.beginBoth()
			s.api.Process.Start(last, nil)
			if outcome, err := s.do(syncer.ModeSync, records...); err == nil {
				t.Fatalf("the process did not die: %+v", outcome)
			}
			s.api.Process.Start(0, nil)
			var left []*v1alpha1.SyncStatus
			for _, record := range records {
				if now := s.now(record.Name); now.Status.State != completed {
					left = append(left, now)
				}
			}
			s.mustDo(syncer.ModeSync, left...)
			for _, record := range records {
				got := s.now(record.Name)
				if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "Secret"}, objects(got)); diff != "" || got.Status.State != completed {
					t.Errorf("state of %s = %s, objects (-want +got):\n%s", got.Name, got.Status.State, diff)
				}
			}
			if got := s.now(records[0].Name).Status; got.Revision != 2 || got.FromRevision != 1 {
				t.Errorf("revisions = %d to %d", got.FromRevision, got.Revision)
			}
		})
	}
}

// TestDyingAlways checks that a record fails whose every attempt ends with the death of the process.
func TestDyingAlways(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	ran := 0
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
		ran++
		s.api.Process.Start(1, nil)
		return syncer.Result{}, s.api.Process.Count()
	}
	for range 10 {
		if _, err := s.do(syncer.ModeSync, s.now(record.Name)); err == nil {
			break
		}
		s.api.Process.Start(0, nil)
	}
	got := s.now(record.Name).Status
	if most := int(*s.policy.Retry.MaxAttempts); ran != most || got.State != failed || got.Error.Reason != v1alpha1.ReasonInterrupted {
		t.Errorf("%d runs, status = %+v", ran, got)
	}
}

// TestWhatEarlierAttemptsHaveWritten checks that a record keeps what a failed attempt has written when the next one does not write it
// again.
func TestWhatEarlierAttemptsHaveWritten(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
		out := result(planned("ConfigMap", "Deployment", "Secret"), missing("a"))
		out.Written = out.Written[:1]
		return out, request.Planned(out.Plan)
	}
	if got := s.mustDo(syncer.ModeSync, record); got.Status.State != failed || !slices.Equal(objects(got), []string{"ConfigMap"}) {
		t.Fatalf("state = %s, objects = %v", got.Status.State, objects(got))
	}
	again, err := syncstatus.Move(s.now(record.Name), syncstatus.Step{To: retrying, At: testkit.Noon})
	if err != nil {
		t.Fatal(err)
	}
	s.api.Put(again)
	s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
		out := result(planned("Deployment"))
		return out, request.Planned(out.Plan)
	}
	got := s.mustDo(syncer.ModeSync, s.now(record.Name))
	if !slices.Equal(objects(got), []string{"ConfigMap", "Deployment"}) || got.Status.Attempts != 2 || got.Status.Error != nil {
		t.Errorf("status = %+v", got.Status)
	}
}
