// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// executorFixture has the dependencies of an Executor: the records of the API, and a Runner that the test controls.
type executorFixture struct {
	*testing.T
	api         *fakeapi.API
	clock       *testkit.Clock
	policy      v1alpha1.SyncPolicySpec
	environment *v1alpha1.Environment
	catalog     *v1alpha1.AppCatalog
	// run is the implementation of Run.
	run func(ctx context.Context, request syncer.Request) (syncer.Result, error)
}

func newExecutorFixture(t *testing.T) *executorFixture {
	t.Helper()
	policy := &v1alpha1.SyncPolicy{}
	v1alpha1.SetObjectDefaults_SyncPolicy(policy)
	s := &executorFixture{
		T: t, clock: testkit.NewClock(t), policy: policy.Spec,
		environment: environmenttest.Environment(), catalog: environmenttest.Catalog(),
	}
	s.api = fakeapi.New(t, s.clock)
	s.environment.Status.AppliedRevision = 1
	s.api.Client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := s.api.Process.Alive()
		return err != nil, nil, err
	})
	return s
}

// now returns the current state of a record.
func (s *executorFixture) now(name string) *v1alpha1.SyncStatus {
	s.Helper()
	return fakeapi.Get[*v1alpha1.SyncStatus](s.api, environmenttest.Teams, name)
}

// begin creates a record of the environment, and moves it through some states.
func (s *executorFixture) begin(of v1alpha1.SyncType, states ...v1alpha1.SyncState) *v1alpha1.SyncStatus {
	s.Helper()
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: s.environment.Namespace, DetectedAt: testkit.Noon,
		Spec: v1alpha1.SyncStatusSpec{
			Type: of, Batch: "b1", Subject: v1alpha1.SyncSubject{
				Kind: v1alpha1.SubjectEnvironment, Name: s.environment.Name, UID: s.environment.UID,
			},
		},
		First: syncstatus.Step{To: v1alpha1.SyncStatePending, At: testkit.Noon},
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, state := range states {
		step := syncstatus.Step{To: state, By: "jane", At: testkit.Noon}
		if state == v1alpha1.SyncStateFailed {
			step.Failure = &syncstatus.Failure{Reason: v1alpha1.ReasonUnreachable, Message: "it did not answer"}
		}
		if record, err = syncstatus.Move(record, step); err != nil {
			s.Fatal(err)
		}
	}
	record.UID = types.UID("of " + record.Name)
	s.api.Put(record)
	return s.now(record.Name)
}

func (s *executorFixture) jobs() *syncer.Executor {
	return &syncer.Executor{
		Runner: s, Records: s.api, SyncStatuses: s.api.Client.ConfigbutlerV1alpha1(), Catalogs: s.api.Client.ConfigbutlerV1alpha1(),
		Clock: s.clock, Policy: func() v1alpha1.SyncPolicySpec { return s.policy },
	}
}

// Run runs the function of the test, which calls the hooks of the request as the real runner does.
func (s *executorFixture) Run(ctx context.Context, request syncer.Request) (syncer.Result, error) {
	return s.run(ctx, request)
}

// job returns a job of the records.
func (s *executorFixture) job(mode syncer.Mode, records ...*v1alpha1.SyncStatus) syncer.Job {
	request := syncer.Request{Mode: mode, Catalog: environmenttest.CatalogUID}
	jane := access.Requesting(&v1alpha1.AutomatedBy{Username: "jane"})
	request.Action, request.Requester = v1alpha1.SyncActionAll, &jane
	return syncer.Job{Environment: s.environment, Records: records, Request: request}
}

// do executes a job of the records.
func (s *executorFixture) do(mode syncer.Mode, records ...*v1alpha1.SyncStatus) (syncer.Outcome, error) {
	return s.jobs().Execute(s.Context(), s.job(mode, records...))
}

// mustDo executes a job that can be recorded, and returns the current state of the first record.
func (s *executorFixture) mustDo(mode syncer.Mode, records ...*v1alpha1.SyncStatus) *v1alpha1.SyncStatus {
	s.Helper()
	outcome, err := s.do(mode, records...)
	if err != nil || len(outcome.Records) != len(records) {
		s.Fatalf("%v: %+v", err, outcome)
	}
	now := s.now(records[0].Name)
	if now.Status.State != outcome.Records[0].Status.State {
		s.Errorf("stored state = %s, returned state = %s", now.Status.State, outcome.Records[0].Status.State)
	}
	return now
}

// result returns the result of a complete run of revision 2, with its failures.
func result(planned *plan.Plan, failures ...v1alpha1.ObjectFailure) syncer.Result {
	return syncer.Result{Revision: 2, Plan: planned, Failures: failures, Written: planned.Summaries(), Complete: true}
}

// planned returns a plan that creates an object of each kind.
func planned(kinds ...string) *plan.Plan {
	p := &plan.Plan{}
	for _, kind := range kinds {
		step := plan.Step{Verb: plan.Create, Namespace: environmenttest.Target}
		step.Kind, step.Name = kind, "one"
		p.Steps = append(p.Steps, step)
	}
	return p
}

// cluster is the cluster that runs write to: an object of each kind.
type cluster struct {
	*executorFixture
	holds map[string]bool
}

// sync writes the missing objects of the kinds, as runs do.
func (c *cluster) sync(_ context.Context, request syncer.Request, kinds []string) (syncer.Result, error) {
	missing := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return c.holds[kind] })
	out := syncer.Result{Revision: 2, Plan: planned(missing...)}
	if err := request.Planned(out.Plan); err != nil {
		return out, err
	}
	for i, step := range out.Plan.Steps {
		if err := c.api.Process.Count(); err != nil {
			return out, err
		}
		c.holds[step.Kind] = true
		out.Written = append(out.Written, out.Plan.Summaries()[i])
		c.clock.SetTime(c.clock.Now().Add(time.Second))
		request.Progress(i+1, len(missing))
	}
	out.Complete = true
	return out, nil
}

// missing returns the failure of an object that the source does not have.
func missing(name string) v1alpha1.ObjectFailure {
	return v1alpha1.ObjectFailure{
		Type: "ConfigMap", Namespace: environmenttest.Production, Name: name, Reason: v1alpha1.ReasonSourceMissing,
		Message: fmt.Sprintf("Failed to sync ConfigMap '%s' from production - does not exist", name),
	}
}

// objects returns the kinds of the objects in a record.
func objects(record *v1alpha1.SyncStatus) []string {
	kinds := map[string]bool{}
	for _, summary := range record.Status.ResourceSummaries {
		kinds[summary.Type] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

func stamp(at time.Time) *metav1.Time {
	out := metav1.NewTime(at)
	return &out
}
