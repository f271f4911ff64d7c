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
		DetectedAt: *stamp(testkit.Noon), StartedAt: stamp(testkit.Noon), ResolvedAt: stamp(testkit.Noon.Add(time.Minute)), Attempts: 1, Warnings: []string{"not copied"},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("wrong record (-want +got):\n%s", diff)
	}
}

func TestWhatComesOfARun(t *testing.T) {
	refused := v1alpha1.ObjectFailure{
		Type: "Deployment", Namespace: environmenttest.Target, Name: "web", Reason: v1alpha1.ReasonRefused,
		Message: "Deployment 'web' of shop-alice: no",
	}
	conflict := func(p *plan.Plan) *plan.Plan {
		p.Conflicts = []v1alpha1.WorkloadConflict{{Kind: "Deployment", Name: "web", Fields: make([]v1alpha1.FieldConflict, 2)}}
		return p
	}
	notTried := syncer.Result{Plan: conflict(planned("Deployment")), Failures: []v1alpha1.ObjectFailure{missing("app-config"), refused}, Refused: true}
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
		"preview":                     {result: result(planned("Deployment")), mode: syncer.ModeDryRun, state: completed},
		"preview of what would fail":  {result: notTried, mode: syncer.ModeDryRun, state: completed},
		"preview that could not look": {err: errors.New("no plan"), mode: syncer.ModeDryRun, state: failed, reason: v1alpha1.ReasonSyncFailed, says: "no plan"},
		"the API server is away": {
			err: fmt.Errorf("read: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), state: failed, reason: v1alpha1.ReasonUnreachable,
			says: "read: dial: refused",
		},
		"it has no time": {err: apierrors.NewTooManyRequests("later", 1), state: failed, reason: v1alpha1.ReasonUnreachable, says: "later"},
		"it lets nobody": {
			err: apierrors.NewForbidden(v1alpha1.Resource("environments"), "", errors.New("no")), state: failed, reason: v1alpha1.ReasonForbidden,
			says: "environments.configbutler.ai is forbidden: no",
		},
		"the catalog is gone": {
			err: fmt.Errorf("read: %w", apierrors.NewNotFound(v1alpha1.Resource("appcatalogs"), "shop")), state: failed,
			reason: v1alpha1.ReasonCatalogNotFound, says: `read: appcatalogs.configbutler.ai "shop" not found`,
		},
		"others write":  {err: fmt.Errorf("%w: ConfigMap a", syncer.ErrContended), state: failed, reason: v1alpha1.ReasonContended, says: "ConfigMap a"},
		"a revision is": {err: syncer.ErrRevisionNotKept, state: failed, reason: v1alpha1.ReasonRevisionNotKept, says: "not kept"},
		"a long story":  {err: errors.New(strings.Repeat("ü", 4000)), state: failed, reason: v1alpha1.ReasonSyncFailed, says: "ü..."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newExecutorFixture(t)
			s.run = func(context.Context, syncer.Request) (syncer.Result, error) { return tt.result, tt.err }
			got := s.mustDo(tt.mode, s.begin(v1alpha1.SyncTypeEnvironment)).Status
			if got.State != tt.state || got.Preview != (tt.mode == syncer.ModeDryRun) || len(got.Failures) != len(tt.result.Failures) {
				t.Errorf("it is %+v", got)
			}
			if tt.says == "" {
				if got.Error != nil {
					t.Errorf("an error: %+v", got.Error)
				}
				return
			}
			if got.Error == nil || got.Error.Reason != tt.reason || !strings.Contains(got.Error.Message, tt.says) || len(got.Error.Message) > 2048 {
				t.Errorf("error %+v", got.Error)
			}
		})
	}
}

func TestPreviewTellsOfWhatIsPlanned(t *testing.T) {
	s := newExecutorFixture(t)
	s.run = func(_ context.Context, request syncer.Request) (syncer.Result, error) {
		if request.Mode != syncer.ModeDryRun || request.Planned != nil || request.Progress != nil {
			t.Errorf("asked for %+v", request)
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
		t.Errorf("it has %v, and warns (-want +got):\n%s", objects(got), diff)
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
		t.Errorf("recorded %v, and at last %v", recorded, got)
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
		"well": {changed, result(planned("ConfigMap", "Deployment")), completed, completed, []string{"Secret"}},
		"well, as somebody has asked for it": {
			nil, result(planned("ConfigMap", "Deployment")), completed, completed, []string{"ConfigMap", "Deployment"},
		},
		"with what it is about missing": {changed, result(planned(), missing("a")), failed, failed, []string{"Secret"}},
		"with a workload in the way": {
			changed, result(planned(), v1alpha1.ObjectFailure{Type: "Deployment", Reason: v1alpha1.ReasonNotOurs, Message: "no"}),
			failed, completed, []string{"Secret"},
		},
		"with nothing written": {changed, syncer.Result{
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
				t.Errorf("%s, and %s, which has %v", got.Status.State, with.Status.State, objects(with))
			}
			if with.Status.FromRevision+with.Status.Revision > 0 {
				t.Errorf("revisions of what is about none: %+v", with.Status)
			}
		})
	}
}

// What has been put aside, is superseded, gone or ended is not carried out; a second record that cannot be is left out.
func TestWhatIsNotCarriedOut(t *testing.T) {
	s := newExecutorFixture(t)
	ran := 0
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) { ran++; return result(planned()), nil }
	superseded := s.begin(v1alpha1.SyncTypeEnvironment, v1alpha1.SyncStateSuperseded)
	stale := superseded.DeepCopy()
	stale.Status.State = pending
	if got := s.mustDo(syncer.ModeSync, stale); got.Status.State != v1alpha1.SyncStateSuperseded || ran > 0 {
		t.Errorf("it is %s, %d runs", got.Status.State, ran)
	}
	gone := s.begin(v1alpha1.SyncTypeDependency)
	fakeapi.Delete[*v1alpha1.SyncStatus](s.api, gone.Namespace, gone.Name)
	if outcome, err := s.do(syncer.ModeSync, gone); err != nil || ran > 0 || outcome.Result.Plan != nil {
		t.Errorf("%v: %+v, %d runs", err, outcome, ran)
	}
	dismissed := s.begin(v1alpha1.SyncTypeDependency, v1alpha1.SyncStateDismissed)
	first := s.begin(v1alpha1.SyncTypeEnvironment)
	if got := s.mustDo(syncer.ModeSync, first, dismissed); got.Status.State != completed || ran != 1 ||
		s.now(dismissed.Name).Status.State != v1alpha1.SyncStateDismissed {
		t.Errorf("it is %s, %d runs", got.Status.State, ran)
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
		t.Errorf("it exists again: %+v", again)
	}
}

// What others write of a record stays.
func TestOthersWriteTheRecord(t *testing.T) {
	s := newExecutorFixture(t)
	record := s.begin(v1alpha1.SyncTypeEnvironment)
	s.api.BeforeWrite(func(runtime.Object) {
		s.api.BeforeWrite(func(runtime.Object) {})
		fakeapi.Change(s.api, record.Namespace, record.Name, func(other *v1alpha1.SyncStatus) { other.Labels["mine"] = "yes" })
	})
	s.run = func(context.Context, syncer.Request) (syncer.Result, error) { return result(planned()), nil }
	if got := s.mustDo(syncer.ModeSync, record); got.Status.State != completed || got.Labels["mine"] != "yes" {
		t.Errorf("it is %+v", got)
	}
}

// A process that has been taken for dead does not end what another one does.
func TestAnotherProcessHasGoneOn(t *testing.T) {
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
		t.Errorf("it is %+v", got)
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
		t.Errorf("it ended with %v", err)
	}
	if got := s.now(record.Name).Status.State; got != inProgress {
		t.Errorf("it is %s", got)
	}
}
