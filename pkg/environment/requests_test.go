// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// prompt adds a record of a change of settings in production.
func (s *fixture) prompt(batch string) *v1alpha1.SyncStatus {
	s.Helper()
	e := s.environment("alice")
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: e.Namespace, DetectedAt: s.clock.Now(), First: syncstatus.Step{To: v1alpha1.SyncStatePending, At: s.clock.Now()},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeDependency, Batch: batch,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: e.Name, UID: e.UID},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	syncstatus.SetChanges(record, []v1alpha1.ResourceSummary{
		{Type: "ConfigMap", Namespace: environmenttest.Production, Name: "settings", ChangeType: v1alpha1.ChangeChanged},
	})
	if _, err := s.api.Write(s.Context(), record); err != nil {
		s.Fatal(err)
	}
	s.detector.changed("alice")
	return record
}

func (s *fixture) level() string {
	live := s.cluster.Live("configmaps", environmenttest.Target, "settings")
	return live.Object["data"].(map[string]any)["level"].(string)
}

func TestDependencies(t *testing.T) {
	louder := strings.ReplaceAll(configMap, "info", "debug")
	for name, tt := range map[string]struct {
		edit func(*v1alpha1.Environment)
		ask  *v1alpha1.SyncRequestSpec
		want []string
	}{
		"by themselves": {edit: automatic, want: []string{"Environment auto.shop-r1.1 Completed r1", "Dependency batch Completed"}},
		"as asked for": {
			ask:  &v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster},
			want: []string{"Environment one Completed by jane r1", "Dependency batch Completed by jane"},
		},
		"with all": {
			ask:  &v1alpha1.SyncRequestSpec{},
			want: []string{"Environment one Completed by jane r1", "Dependency batch Completed", "Environment two Completed by jane r1"},
		},
		"a part of them": {
			ask: &v1alpha1.SyncRequestSpec{
				Action: v1alpha1.SyncActionCluster, Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}},
			},
			want: []string{"Environment one Completed by jane r1", "Dependency batch Pending", "Dependency two Completed by jane"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			if tt.edit != nil {
				s.change(tt.edit)
			} else {
				s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			}
			s.start(0)
			s.applied(1)
			s.produce(louder)
			s.pass(2)
			s.prompt("batch")
			s.pass(2)
			if tt.ask != nil {
				s.reaches("the prompt", func(e *v1alpha1.Environment) bool {
					return len(e.Status.ChangedDependencies) == 1 && e.Status.LatestDependencySync != "" && len(e.Status.ActiveSyncs) == 0
				})
				s.pass(30)
				s.ask("two", "jane", *tt.ask)
			}
			s.expectRecords(tt.want...)
			if s.level() != "debug" {
				t.Errorf("level = %s", s.level())
			}
			s.reaches("what is left", func(e *v1alpha1.Environment) bool {
				open := strings.Contains(strings.Join(tt.want, " "), "Pending")
				return len(e.Status.PendingRequests) == 0 && (e.Status.LatestDependencySync != "") == open && len(e.Status.ActiveSyncs) == 0
			})
		})
	}
}

// TestDependenciesOfAPinnedEnvironment checks that a sync of the pinned revision, which applies again what was applied then, leaves changes
// of dependencies pending.
func TestDependenciesOfAPinnedEnvironment(t *testing.T) {
	s := newFixture(t)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.produce(strings.ReplaceAll(configMap, "info", "debug"))
	s.pass(2)
	s.prompt("batch")
	s.pass(2)
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.expectRecords("Environment one Completed by jane r1", "Environment generation-2 Completed by jane r1", "Dependency batch Pending",
		"Environment two Completed by jane r1")
	if s.level() != "info" {
		t.Errorf("level = %s", s.level())
	}
}

// TestConflict checks that fields that a Branch and its catalog have both changed wait for a decision, and that the same record then
// continues.
func TestConflict(t *testing.T) {
	s := newFixture(t, func(e *v1alpha1.Environment) {
		e.Spec.Type = v1alpha1.EnvironmentBranch
		e.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}
	})
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.byHand("web", "web:mine")
	s.offer(2, image(web, "2"), worker)
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.expectRecords("Environment one Completed by jane r1", "Environment two Conflicted by jane r2")
	s.reaches("the conflict", func(e *v1alpha1.Environment) bool {
		return len(e.Status.Conflicts) == 1 && len(e.Status.PendingRequests) == 1 && len(e.Status.ActiveSyncs) == 0 &&
			meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionConflicted)
	})
	s.has("web:mine")
	s.request(v1alpha1.PendingEnvironmentRequest{
		ID: "three", Actor: "joe", Type: v1alpha1.EnvironmentRequestResolve,
		Resolve: &v1alpha1.ConflictResolutionSpec{Take: []v1alpha1.ConflictChoice{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}},
	})
	s.applied(2)
	s.expectRecords("Environment one Completed by jane r1", "Environment two Completed by jane r2")
	s.has("web:2")
	if conflicts := s.environment("alice").Status.Conflicts; len(conflicts) > 0 {
		t.Errorf("conflicts = %v", conflicts)
	}
}

// byHand changes the image of a Deployment in the target, as a user does.
func (s *fixture) byHand(name, image string) {
	s.Helper()
	client := s.cluster.Client().Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(environmenttest.Target)
	patch := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},`+
		`"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`,
		name, name, image)
	if _, err := client.Patch(s.Context(), name, types.ApplyPatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "joe", Force: new(true)}); err != nil {
		s.Fatal(err)
	}
}

func TestPartialSync(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{
		Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}},
	})
	s.expectRecords("Environment one Completed by jane r1")
	s.reaches("the rest is on offer", func(e *v1alpha1.Environment) bool {
		return len(e.Status.PendingRequests) == 0 && e.Status.ChangedWorkloadCount == 1 && e.Status.AppliedRevision == 0
	})
	s.has("worker:1")
}

func TestDismissalsEndWithASync(t *testing.T) {
	s := newFixture(t)
	s.change(func(e *v1alpha1.Environment) { e.Status.DismissedCatalogSync, e.Status.Dismissals = "shop-r1", 3 })
	s.start(0)
	s.pass(10)
	if e := s.environment("alice"); e.Status.Dismissals != 3 {
		t.Errorf("%+v", e.Status)
	}
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	if e := s.environment("alice"); e.Status.Dismissals != 0 || e.Status.DismissedCatalogSync != "" {
		t.Errorf("%+v", e.Status)
	}
}

// TestDismissalsEndWithAnySync checks that a sync of a part also resets the number of dismissals, and that what it applies is not dismissed
// any more.
func TestDismissalsEndWithAnySync(t *testing.T) {
	for name, tt := range map[string]struct {
		spec                v1alpha1.SyncRequestSpec
		catalog, dependency bool
	}{
		"a refresh": {v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster}, true, false},
		"a part": {v1alpha1.SyncRequestSpec{
			Action: v1alpha1.SyncActionCatalog, Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}},
		}, true, true},
		"what the catalog offers": {v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCatalog}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			s.start(0)
			s.applied(1)
			s.offer(2, image(web, "2"), image(worker, "2"))
			s.produce(strings.ReplaceAll(configMap, "info", "debug"))
			s.reaches("the prompt", func(e *v1alpha1.Environment) bool {
				return e.Status.ChangedWorkloadCount == 2 && len(e.Status.ChangedDependencies) == 1
			})
			s.change(func(e *v1alpha1.Environment) {
				e.Status.DismissedCatalogSync, e.Status.DismissedDependencySync, e.Status.Dismissals = "shop-r2", "alice-bcdfg", 3
			})
			s.reaches("the request is dismissed", func(e *v1alpha1.Environment) bool {
				return e.Status.State == "Dismissed: 2 workloads, 1 ConfigMap changed"
			})
			s.ask("two", "jane", tt.spec)
			s.reaches("the end", func(e *v1alpha1.Environment) bool {
				status := &e.Status
				return len(status.PendingRequests) == 0 && status.Dismissals == 0 && (status.DismissedCatalogSync != "") == tt.catalog &&
					(status.DismissedDependencySync != "") == tt.dependency
			})
		})
	}
}

// TestDismissedDependencies checks that a dismissal whose process died before the status was updated is reported and counted once.
func TestDismissedDependencies(t *testing.T) {
	s := newFixture(t)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.produce(strings.ReplaceAll(configMap, "info", "debug"))
	record := s.prompt("batch")
	s.reaches("the prompt", func(e *v1alpha1.Environment) bool {
		return e.Status.State == "1 ConfigMap changed" && e.Status.LatestDependencySync == record.Name
	})
	moved, err := syncstatus.Move(s.called(record.Name), syncstatus.Step{To: v1alpha1.SyncStateDismissed, By: "jane", At: s.clock.Now()})
	if err == nil {
		_, err = s.api.Write(t.Context(), moved)
	}
	if err != nil {
		t.Fatal(err)
	}
	dismissed := func(e *v1alpha1.Environment) bool {
		return e.Status.State == "Dismissed: 1 ConfigMap changed" && e.Status.DismissedDependencySync == record.Name && e.Status.Dismissals == 1
	}
	s.reaches("the request is dismissed", dismissed)
	s.pass(10)
	if e := s.environment("alice"); !dismissed(e) {
		t.Errorf("%+v", e.Status)
	}
	s.produce(strings.ReplaceAll(configMap, "info", "trace"))
	another := s.prompt("another")
	s.reaches("another prompt", func(e *v1alpha1.Environment) bool {
		return e.Status.State == "1 ConfigMap changed" && e.Status.LatestDependencySync == another.Name && e.Status.DismissedDependencySync == ""
	})
}

// TestWhatTheSourceLosesIsSaid checks that an environment is not Synced if the source has lost an object, although the copy is kept.
func TestWhatTheSourceLosesIsSaid(t *testing.T) {
	s := newFixture(t)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.reaches("nothing to do", func(e *v1alpha1.Environment) bool { return e.Status.State == "Synced" })
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	s.detector.changed("alice")
	s.reaches("the state is shown", func(e *v1alpha1.Environment) bool { return e.Status.State == "1 ConfigMap changed" })
	if s.level() != "info" {
		t.Errorf("level = %s", s.level())
	}
}

// called returns the record with a name.
func (s *fixture) called(name string) *v1alpha1.SyncStatus {
	s.Helper()
	for _, record := range s.syncStatuses() {
		if record.Name == name {
			return record
		}
	}
	s.Fatalf("record %s does not exist", name)
	return nil
}

// TestAttachedObjectsAreSyncedAutomatically checks that attached objects are synced automatically whenever they change in the source, and
// never because of a change in the target.
func TestAttachedObjectsAreSyncedAutomatically(t *testing.T) {
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.Adapt.Replicas = v1alpha1.ReplicasAsSource })
	s.start(0)
	s.applied(1)
	most := func() string {
		live := s.cluster.Live("horizontalpodautoscalers", environmenttest.Target, "web")
		if live == nil {
			return "none"
		}
		return fmt.Sprint(live.Object["spec"].(map[string]any)["maxReplicas"])
	}
	brings := func(want string) {
		t.Helper()
		s.pass(2)
		s.detector.changed("alice")
		s.reaches("at most "+want, func(e *v1alpha1.Environment) bool {
			return most() == want && e.Status.State == "Synced" && len(e.Status.ActiveSyncs) == 0
		})
	}
	for _, replicas := range []string{"2", "3", "2", "3"} {
		s.produce(fmt.Sprintf("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, "+
			"spec: {maxReplicas: %s, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", replicas))
		brings(replicas)
	}
	before := len(s.recordLines())
	s.cluster.Drop("horizontalpodautoscalers", environmenttest.Target, "web")
	s.detector.changed("alice")
	s.reaches("the state is shown", func(e *v1alpha1.Environment) bool { return e.Status.State == "1 HorizontalPodAutoscaler changed" })
	s.pass(30)
	if most() != "none" || len(s.recordLines()) != before {
		t.Errorf("maxReplicas = %s; records: %q", most(), s.recordLines())
	}
	s.produce("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 1, " +
		"selector: {matchLabels: {app: web}}}}")
	brings("3")
	s.cluster.Drop("horizontalpodautoscalers", environmenttest.Production, "web")
	brings("none")
}

// TestAttachedObjectsAfterARunThatFailed has a policy of the cluster reject an object of the source until it is corrected.
func TestAttachedObjectsAfterARunThatFailed(t *testing.T) {
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.Adapt.Replicas = v1alpha1.ReplicasAsSource })
	s.start(0)
	s.applied(1)
	budget := func(available int) {
		s.produce(fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, "+
			"spec: {minAvailable: %d, selector: {matchLabels: {app: web}}}}", available))
		s.detector.changed("alice")
	}
	s.refuse("dry PATCH shop-alice/poddisruptionbudgets/web")
	budget(1)
	s.reaches("a failure", func(e *v1alpha1.Environment) bool { return e.Status.LastError != nil })
	s.reaches("the request is given up", func(*v1alpha1.Environment) bool {
		return slices.ContainsFunc(s.syncStatuses(), func(r *v1alpha1.SyncStatus) bool {
			return r.Status.State == v1alpha1.SyncStateManualIntervention
		})
	})
	s.refuse("")
	budget(2)
	s.reaches("what was corrected", func(e *v1alpha1.Environment) bool {
		live := s.cluster.Live("poddisruptionbudgets", environmenttest.Target, "web")
		return live != nil && e.Status.State == "Synced"
	})
}

// TestConditionsWhileTheSourceIsLookedAt has the source change while the environment is not up to date: the condition keeps its transition
// time.
func TestConditionsWhileTheSourceIsLookedAt(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	since := func() metav1.Time {
		t.Helper()
		var since metav1.Time
		s.reaches("the offer", func(e *v1alpha1.Environment) bool {
			condition := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
			since = condition.LastTransitionTime
			return condition.Reason == v1alpha1.ReasonWorkloadsChanged
		})
		return since
	}
	before := since()
	for i := range 3 {
		s.pass(5)
		s.produce(fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, "+
			"spec: {minAvailable: %d, selector: {matchLabels: {app: web}}}}", i))
		s.detector.changed("alice")
		s.pass(5)
		if got := since(); !got.Equal(&before) {
			t.Fatalf("transition time = %s, want %s", got, before)
		}
	}
}

func TestRediscovery(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.request(v1alpha1.PendingEnvironmentRequest{ID: "one", Actor: "jane", Type: v1alpha1.EnvironmentRequestRediscover})
	s.reaches("no request is pending", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.detector.mu.Lock()
	defer s.detector.mu.Unlock()
	if s.detector.rediscovered < 1 { // A conflict in the status repeats it.
		t.Error("not rediscovered")
	}
}
