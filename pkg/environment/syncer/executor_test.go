// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

const (
	pending    = v1alpha1.SyncStatePending
	inProgress = v1alpha1.SyncStateInProgress
	completed  = v1alpha1.SyncStateCompleted
	conflicted = v1alpha1.SyncStateConflicted
	failed     = v1alpha1.SyncStateFailed
	retrying   = v1alpha1.SyncStateRetrying
)

func TestACompleteRun(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
		during := s.now(record.Name).Status
		if during.State != inProgress || during.Attempts != 1 || during.FromRevision != 1 || !during.StartedAt.Equal(stamp(testkit.Noon)) {
			t.Errorf("during the run it is %+v", during)
		}
		s.clock.SetTime(testkit.Noon.Add(time.Minute))
		out := result(planned("ConfigMap", "Deployment"))
		out.Plan.Warnings = []string{"not copied"}
		return out, nil
	}
	got := s.mustDo(syncer.ModeSync, record)
	want := v1alpha1.SyncRecord{
		State: completed, AutoTriggered: true, Revision: 2, FromRevision: 1, WorkloadCount: 1, WorkloadNames: []string{"one"},
		ResourceSummaries: []v1alpha1.ResourceSummary{
			{Type: "ConfigMap", Namespace: environmenttest.Target, Name: "one", ChangeType: v1alpha1.ChangeAdded},
			{Type: "Deployment", Namespace: environmenttest.Target, Name: "one", ChangeType: v1alpha1.ChangeAdded},
		},
		DetectedAt: *stamp(testkit.Noon), StartedAt: stamp(testkit.Noon),
		ResolvedAt: stamp(testkit.Noon.Add(time.Minute)), Attempts: 1, Warnings: []string{"not copied"},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("wrong record (-want +got):\n%s", diff)
	}
}

func TestResultOfARun(t *testing.T) {
	refused := v1alpha1.ObjectFailure{
		Type: "Deployment", Namespace: environmenttest.Target, Name: "web", Reason: v1alpha1.ReasonRefused,
		Message: "Deployment 'web' of shop-alice: no",
	}
	conflict := func(p *plan.Plan) *plan.Plan {
		p.Conflicts = []v1alpha1.WorkloadConflict{{Kind: "Deployment", Name: "web", Fields: make([]v1alpha1.FieldConflict, 2)}}
		return p
	}
	notTried := syncer.Result{
		Plan: conflict(planned("Deployment")), Failures: []v1alpha1.ObjectFailure{missing("app-config"), refused},
	}
	for name, tt := range map[string]struct {
		result syncer.Result
		err    error
		mode   syncer.Mode
		state  v1alpha1.SyncState
		reason string
		says   string
	}{
		"one is missing": {
			result: result(planned("Deployment"), missing("app-config")), state: failed, reason: v1alpha1.ReasonSourceMissing,
			says: "Failed to sync ConfigMap 'app-config' from production - does not exist",
		},
		"three are": {
			result: result(planned("Deployment"), missing("a"), missing("b"), missing("c")), state: failed, reason: v1alpha1.ReasonSourceMissing,
			says: "Failed to sync ConfigMap 'a' from production - does not exist; and 2 more objects failed",
		},
		"one is refused, and so nothing written": {
			result: notTried, state: failed, reason: v1alpha1.ReasonRefused,
			says: "Nothing was written: Deployment 'web' of shop-alice: no; and 1 more object failed",
		},
		"fields were changed twice": {
			result: result(conflict(planned("ConfigMap"))), state: conflicted, reason: v1alpha1.ReasonFieldsChangedTwice,
			says: "2 fields changed here and in the catalog, of Deployment 'web'",
		},
		"and one is missing": {
			result: result(conflict(planned("ConfigMap")), missing("a")), state: conflicted, reason: v1alpha1.ReasonFieldsChangedTwice,
			says: "2 fields changed here and in the catalog, of Deployment 'web'; Failed to sync ConfigMap 'a' from production - does not exist",
		},
		"preview":              {result: result(planned("Deployment")), mode: syncer.ModeDryRun, state: completed},
		"preview of a failure": {result: notTried, mode: syncer.ModeDryRun, state: completed},
		"preview without a plan": {
			err: errors.New("no plan"), mode: syncer.ModeDryRun, state: failed, reason: v1alpha1.ReasonSyncFailed, says: "no plan",
		},
		"the API server is unreachable": {
			err: fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), state: failed, reason: v1alpha1.ReasonUnreachable,
			says: "read: dial: refused",
		},
		"the API server is busy": {
			err: apierrors.NewTooManyRequests("later", 1), state: failed, reason: v1alpha1.ReasonUnreachable, says: "later",
		},
		"the request is forbidden": {
			err: apierrors.NewForbidden(v1alpha1.Resource("environments"), "", errors.New("no")), state: failed, reason: v1alpha1.ReasonForbidden,
			says: "environments.configbutler.ai is forbidden: no",
		},
		"the catalog does not exist": {
			err: fmt.Errorf("read: %w", apierrors.NewNotFound(v1alpha1.Resource("appcatalogs"), "shop")), state: failed,
			reason: v1alpha1.ReasonCatalogNotFound, says: `read: appcatalogs.configbutler.ai "shop" not found`,
		},
		"concurrent writes": {
			err: fmt.Errorf("%w: ConfigMap a", syncer.ErrContended), state: failed, reason: v1alpha1.ReasonContended, says: "ConfigMap a",
		},
		"the revision is not kept": {err: syncer.ErrRevisionNotKept, state: failed, reason: v1alpha1.ReasonRevisionNotKept, says: "not kept"},
		"a long message":           {err: errors.New(strings.Repeat("ü", 4000)), state: failed, reason: v1alpha1.ReasonSyncFailed, says: "ü..."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newExecutorFixture(t)
			s.run = func(context.Context, syncer.Request) (syncer.Result, error) { return tt.result, tt.err }
			got := s.mustDo(tt.mode, s.begin(v1alpha1.SyncTypeEnvironment)).Status
			if got.State != tt.state || got.Preview != (tt.mode == syncer.ModeDryRun) || len(got.Failures) != len(tt.result.Failures) {
				t.Errorf("status = %+v", got)
			}
			if tt.says == "" {
				if got.Error != nil {
					t.Errorf("unexpected error: %+v", got.Error)
				}
				return
			}
			if got.Error == nil || got.Error.Reason != tt.reason || !strings.Contains(got.Error.Message, tt.says) || len(got.Error.Message) > 2048 {
				t.Errorf("error = %+v", got.Error)
			}
		})
	}
}

func TestPreviewReportsThePlan(t *testing.T) {
	s := newExecutorFixture(t)
	s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
		if request.Mode != syncer.ModeDryRun || request.Planned != nil || request.Progress != nil {
			t.Errorf("request = %+v", request)
		}
		p := planned("Deployment")
		p.Conflicts = []v1alpha1.WorkloadConflict{{Kind: "Deployment", Name: "web", Fields: make([]v1alpha1.FieldConflict, 1)}}
		return syncer.Result{Plan: p, Revision: 2, Unchecked: true}, nil
	}
	got := s.mustDo(syncer.ModeDryRun, s.begin(v1alpha1.SyncTypeEnvironment))
	want := []string{
		"the namespace shop-alice does not exist yet: what it would refuse is not known",
		"1 field changed here and in the catalog, of Deployment 'web'",
	}
	if diff := cmp.Diff(want, got.Status.Warnings); diff != "" || !slices.Equal(objects(got), []string{"Deployment"}) {
		t.Errorf("objects %v, warnings (-want +got):\n%s", objects(got), diff)
	}
}

func TestManyFailures(t *testing.T) {
	s := newExecutorFixture(t)
	failures := []v1alpha1.ObjectFailure{missing("twice"), missing("twice")}
	for i := range 150 {
		failures = append(failures, missing(fmt.Sprint("a", i)))
	}
	failures = append(failures, v1alpha1.ObjectFailure{Type: "Pod", Reason: v1alpha1.ReasonRefused, Message: strings.Repeat("a", 600)})
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
		return result(planned(), failures...), nil
	}
	got := s.mustDo(syncer.ModeSync, s.begin(v1alpha1.SyncTypeEnvironment)).Status.Failures
	if len(got) != 100 || got[0].Type != "Pod" || len(got[0].Message) != 512 || got[1].Name != "twice" || got[2].Name != "a0" {
		t.Errorf("%d failures: %+v", len(got), got[:3])
	}
}

func TestProgress(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	var recorded []int32
	s.api.BeforeWrite(func(object runtime.Object) {
		record := object.(*v1alpha1.SyncStatus)
		if p := record.Status.Progress; p != nil && record.Status.State == inProgress {
			recorded = append(recorded, p.Done)
		}
	})
	s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
		for i := range 10 {
			s.clock.SetTime(s.clock.Now().Add(400 * time.Millisecond))
			request.Progress(i+1, 11)
		}
		request.Progress(11, 11)
		return result(planned()), nil
	}
	got := s.mustDo(syncer.ModeSync, record).Status.Progress
	if !slices.Equal(recorded, []int32{3, 6, 9}) || got.Done != 11 || got.Total != 11 {
		t.Errorf("recorded progress = %v, final progress = %v", recorded, got)
	}
}

func TestARecordThatEndsWithAnother(t *testing.T) {
	changed := []v1alpha1.ResourceSummary{
		{Type: "Secret", Namespace: environmenttest.Production, Name: "database", ChangeType: v1alpha1.ChangeChanged},
	}
	for name, tt := range map[string]struct {
		detected      []v1alpha1.ResourceSummary
		result        syncer.Result
		first, second v1alpha1.SyncState
		objects       []string
	}{
		"success": {changed, result(planned("ConfigMap", "Deployment")), completed, completed, []string{"Secret"}},
		"success, requested by a user": {
			nil, result(planned("ConfigMap", "Deployment")), completed, completed, []string{"ConfigMap", "Deployment"},
		},
		"the changed object is missing": {changed, result(planned(), missing("a")), failed, failed, []string{"Secret"}},
		"a workload cannot be written": {
			changed, result(planned(), v1alpha1.ObjectFailure{Type: "Deployment", Reason: v1alpha1.ReasonNotOurs, Message: "no"}),
			failed, completed, []string{"Secret"},
		},
		"nothing is written": {changed, syncer.Result{
			Plan: planned(), Failures: []v1alpha1.ObjectFailure{{Type: "Deployment", Reason: v1alpha1.ReasonRefused, Message: "no"}},
		}, failed, failed, []string{"Secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newExecutorFixture(t)
			first, second := s.begin(v1alpha1.SyncTypeEnvironment), s.begin(v1alpha1.SyncTypeDependency)
			second.Status.ResourceSummaries = tt.detected
			s.api.Put(second)
			second = s.now(second.Name)
			s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
				return tt.result, request.Planned(tt.result.Plan)
			}
			got := s.mustDo(syncer.ModeSync, first, second)
			with := s.now(second.Name)
			if got.Status.State != tt.first || with.Status.State != tt.second || !slices.Equal(objects(with), tt.objects) {
				t.Errorf("states = %s and %s, objects of the second = %v", got.Status.State, with.Status.State, objects(with))
			}
			if with.Status.FromRevision+with.Status.Revision > 0 {
				t.Errorf("dependency record has revisions: %+v", with.Status)
			}
		})
	}
}

// TestWhatIsNotCarriedOut checks that superseded and deleted records are not executed, and that a dismissed second
// record does not prevent the first one.
func TestWhatIsNotCarriedOut(t *testing.T) {
	s := newExecutorFixture(t)
	ran := 0
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) { ran++; return result(planned()), nil }
	superseded := s.begin(v1alpha1.SyncTypeEnvironment, v1alpha1.SyncStateSuperseded)
	stale := superseded.DeepCopy()
	stale.Status.State = pending
	if got := s.mustDo(syncer.ModeSync, stale); got.Status.State != v1alpha1.SyncStateSuperseded || ran > 0 {
		t.Errorf("state = %s after %d runs", got.Status.State, ran)
	}
	deleted := s.begin(v1alpha1.SyncTypeDependency)
	fakeapi.Delete[*v1alpha1.SyncStatus](s.api, deleted.Namespace, deleted.Name)
	if outcome, err := s.do(syncer.ModeSync, deleted); err != nil || ran > 0 || outcome.Result.Plan != nil {
		t.Errorf("error %v, outcome %+v, %d runs", err, outcome, ran)
	}
	dismissed := s.begin(v1alpha1.SyncTypeDependency, v1alpha1.SyncStateDismissed)
	first := s.begin(v1alpha1.SyncTypeEnvironment)
	if got := s.mustDo(syncer.ModeSync, first, dismissed); got.Status.State != completed || ran != 1 ||
		s.now(dismissed.Name).Status.State != v1alpha1.SyncStateDismissed {
		t.Errorf("state = %s after %d runs", got.Status.State, ran)
	}
}

func TestARecordThatIsDeletedMeanwhile(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
		fakeapi.Delete[*v1alpha1.SyncStatus](s.api, record.Namespace, record.Name)
		return result(planned()), nil
	}
	outcome, err := s.do(syncer.ModeSync, record)
	if err != nil || outcome.Records[0].Status.State != completed || !outcome.Result.Complete {
		t.Errorf("%v: %+v", err, outcome)
	}
	if again := s.now(record.Name); again != nil {
		t.Errorf("record was created again: %+v", again)
	}
}

// TestOthersWriteTheRecord checks that concurrent changes of a record are kept.
func TestOthersWriteTheRecord(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.api.BeforeWrite(func(runtime.Object) {
		s.api.BeforeWrite(func(runtime.Object) {})
		fakeapi.Change(s.api, record.Namespace, record.Name, func(other *v1alpha1.SyncStatus) { other.Labels["mine"] = "yes" })
	})
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) { return result(planned()), nil }
	if got := s.mustDo(syncer.ModeSync, record); got.Status.State != completed || got.Labels["mine"] != "yes" {
		t.Errorf("status = %+v", got)
	}
}

// TestAnotherProcessHasContinued checks that a process does not end a record that another process has started again.
func TestAnotherProcessHasContinued(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
		fakeapi.Change(s.api, record.Namespace, record.Name, func(other *v1alpha1.SyncStatus) { other.Status.Attempts++ })
		return result(planned()), nil
	}
	if outcome, err := s.do(syncer.ModeSync, record); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v: %+v", err, outcome)
	}
	if got := s.now(record.Name).Status; got.State != inProgress || got.Attempts != 2 {
		t.Errorf("status = %+v", got)
	}
}

func TestARunThatIsStopped(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	ctx, stop := context.WithCancel(t.Context())
	s.run = func(ctx context.Context, _ syncer.Request) (syncer.Result, error) {
		stop()
		return syncer.Result{}, ctx.Err()
	}
	if _, err := s.jobs().Execute(ctx, s.job(syncer.ModeSync, record)); !errors.Is(err, context.Canceled) {
		t.Errorf("Execute returned %v", err)
	}
	if got := s.now(record.Name).Status.State; got != inProgress {
		t.Errorf("state = %s", got)
	}
}
