// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/copies"
	"github.com/configbutler/slipstream/pkg/environment/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncrecord"
)

func automatic(e *v1alpha1.Environment) { e.Spec.AutoSync = true }

// held waits until alice says why syncs wait; without a reason, that they do not.
func (s *stage) held(reason string) {
	s.Helper()
	s.reaches("Held "+reason, func(e *v1alpha1.Environment) bool {
		held := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionHeld)
		if reason == "" {
			return held != nil && held.Status == metav1.ConditionFalse
		}
		return held != nil && held.Status == metav1.ConditionTrue && held.Reason == reason
	})
}

// stalled waits until alice says why nothing can be synced.
func (s *stage) stalled(reason string) {
	s.Helper()
	s.reaches("Stalled "+reason, func(e *v1alpha1.Environment) bool {
		stalled := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionStalled)
		if reason == "" {
			return e.Status.ObservedGeneration == e.Generation && stalled == nil
		}
		return stalled != nil && stalled.Reason == reason
	})
}

// has expects the images in the target.
func (s *stage) has(want string) {
	s.Helper()
	if got := s.images(); got != want {
		s.Errorf("the target has %q, want %q", got, want)
	}
}

func TestSyncThatIsAskedFor(t *testing.T) {
	s := newStage(t)
	s.start(0)
	s.reaches("the offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 1 && e.Status.ChangedWorkloadCount == 2
	})
	s.tells()
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.tells("Environment one Completed by jane r1")
	s.has("web:1 worker:1")
	s.offer(2, image(web, "2"), worker)
	s.reaches("the next offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 2 && e.Status.ChangedWorkloadCount == 1
	})
	s.pass(60)
	s.has("web:1 worker:1")
	status := s.environment("alice").Status
	if status.AppliedCatalogSync != "shop-r1" || status.LatestCatalogSync != "shop-r2" || status.LastCatalogSyncedAt == nil ||
		status.LastDependencySyncedAt == nil || len(status.History) != 1 || status.History[0].SyncStatus != s.syncStatuses()[0].Name {
		t.Errorf("%+v", status)
	}
}

func TestSyncByItself(t *testing.T) {
	s := newStage(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.tells("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2")
	s.has("web:2 worker:1")
	s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) {
		spec.Patches = []v1alpha1.Patch{{
			Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "worker"}, Type: v1alpha1.PatchStrategicMerge,
			Patch: `{"spec":{"template":{"spec":{"containers":[{"name":"worker","image":"worker:mine"}]}}}}`,
		}}
	}, "patches")
	s.tells("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2", "Environment auto.shop-r2.2 Completed r2")
	s.has("web:2 worker:mine")
}

// An edit that changes nothing of what is built begins nothing.
func TestEditWithoutEffect(t *testing.T) {
	s := newStage(t, automatic)
	s.start(0)
	s.applied(1)
	s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) { spec.TTL = &metav1.Duration{Duration: 1000 * time.Hour} }, "ttl")
	s.reaches("the edit", func(e *v1alpha1.Environment) bool {
		return e.Status.ObservedGeneration == e.Generation && e.Status.ExpiresAt != nil
	})
	s.pass(60)
	s.tells("Environment auto.shop-r1.1 Completed r1")
}

func TestWindows(t *testing.T) {
	evening := func(e *v1alpha1.Environment) {
		e.Spec.SyncWindows = []v1alpha1.SyncWindow{{
			Name: "evening", Kind: v1alpha1.SyncWindowAllow, Schedule: "5 12 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC",
		}}
	}
	t.Run("hold back what begins by itself", func(t *testing.T) {
		s := newStage(t, automatic, evening)
		s.start(0)
		s.held(v1alpha1.ReasonWindowClosed)
		if message := meta.FindStatusCondition(s.environment("alice").Status.Conditions, v1alpha1.ConditionHeld).Message; message != "window evening opens 12:05 UTC" {
			t.Error(message)
		}
		s.tells("Environment auto.shop-r1.1 Pending r1")
		s.has("")
		s.applied(1)
		if at := s.environment("alice").Status.LastCatalogSyncedAt; at.Before(&metav1.Time{Time: noon.Add(5 * time.Minute)}) {
			t.Errorf("synced at %s", at)
		}
	})
	t.Run("hold back a request", func(t *testing.T) {
		s := newStage(t, evening)
		s.start(0)
		s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
		s.held(v1alpha1.ReasonWindowClosed)
		s.tells("Environment one Pending by jane r1")
		s.ask("two", "jane", v1alpha1.SyncRequestSpec{Force: true})
		s.applied(1)
		s.tells("Environment one Superseded by jane r1", "Environment two Completed by jane r1")
		if s.clock.Now().After(noon.Add(5 * time.Minute)) {
			t.Errorf("it has taken until %s", s.clock.Now())
		}
	})
}

func TestKillSwitch(t *testing.T) {
	s := newStage(t, automatic)
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.Suspend.EnvironmentAutoSync = true
	s.keep("syncpolicies", policy)
	s.start(0)
	s.held(v1alpha1.ReasonSuspended)
	s.pass(60)
	s.tells()
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	policy.Spec.Suspend.EnvironmentAutoSync = false
	s.offer(2, image(web, "2"), worker)
	s.keep("syncpolicies", policy)
	s.applied(2)
}

func TestPin(t *testing.T) {
	s := newStage(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.applied(1)
	s.has("web:1 worker:1")
	s.offer(3, image(web, "3"), worker)
	s.held(v1alpha1.ReasonPinned)
	s.pass(60)
	s.tells("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2", "Environment generation-2 Completed by jane r1")
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.reaches("the request is over", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.applied(1)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, pinField)
	s.applied(3)
	var history []string
	for _, entry := range s.environment("alice").Status.History {
		history = append(history, fmt.Sprint(entry.Revision))
	}
	if got := strings.Join(history, " "); got != "3 1 2" {
		t.Errorf("history %s", got)
	}
}

func TestShadow(t *testing.T) {
	s := newStage(t, automatic, func(e *v1alpha1.Environment) { e.Spec.Shadow = true })
	s.start(0)
	s.tells("Environment auto.shop-r1.1 Completed preview r1")
	s.pass(60)
	s.tells("Environment auto.shop-r1.1 Completed preview r1")
	s.has("")
	if status := s.environment("alice").Status; status.AppliedRevision != 0 || len(status.ActiveSyncs) > 0 {
		t.Errorf("%+v", status)
	}
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.has("web:1 worker:1")
}

// refuse has the cluster refuse a request until it is called again with nothing.
func (s *stage) refuse(refused string) {
	s.cluster.Answer(func(request string) *metav1.Status {
		if refused != "" && request == refused {
			return environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}
		return s.life.request(request)
	})
}

func TestRetries(t *testing.T) {
	s := newStage(t, automatic)
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.start(0)
	s.tells("Environment auto.shop-r1.1 ManualIntervention r1")
	record := s.syncStatuses()[0]
	if record.Status.Attempts != 5 || record.Status.Error == nil {
		t.Errorf("%+v", record.Status)
	}
	s.reaches("the trouble", func(e *v1alpha1.Environment) bool {
		return e.Status.LastError != nil && len(e.Status.ActiveSyncs) == 0 && meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled)
	})
	if told := s.events.told(); !slices.ContainsFunc(told, func(line string) bool { return strings.Contains(line, "Warning ManualIntervention") }) {
		t.Errorf("Events %q", told)
	}
	s.pass(60)
	s.tells("Environment auto.shop-r1.1 ManualIntervention r1")
	s.refuse("")
	retried, err := syncrecord.Move(record, syncrecord.Step{To: v1alpha1.SyncStateRetrying, By: "jane", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), retried); err != nil {
		t.Fatal(err)
	}
	s.applied(1)
	if status := s.environment("alice").Status; status.LastError != nil {
		t.Errorf("%+v", status.LastError)
	}
}

// What is newer takes the place of what failed.
func TestNewerRevisionTakesThePlace(t *testing.T) {
	s := newStage(t, automatic)
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.start(0)
	s.tells("Environment auto.shop-r1.1 ManualIntervention r1")
	s.offer(2, worker)
	s.applied(2)
	s.tells("Environment auto.shop-r1.1 Superseded r1", "Environment auto.shop-r2.1 Completed r2")
}

// prompt has a record say that settings has changed in production.
func (s *stage) prompt(batch string) *v1alpha1.SyncStatus {
	s.Helper()
	e := s.environment("alice")
	record, err := syncrecord.New(syncrecord.Beginning{
		Namespace: e.Namespace, DetectedAt: s.clock.Now(), First: syncrecord.Step{To: v1alpha1.SyncStatePending, At: s.clock.Now()},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeDependency, Batch: batch,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: e.Name, UID: e.UID},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	syncrecord.SetChanges(record, []v1alpha1.ResourceSummary{
		{Type: "ConfigMap", Namespace: environmenttest.Production, Name: "settings", ChangeType: v1alpha1.ChangeChanged},
	})
	if err := s.Write(s.Context(), record); err != nil {
		s.Fatal(err)
	}
	return record
}

func (s *stage) level() string {
	live := s.cluster.Live("configmaps", environmenttest.Target, "settings")
	return live.Object["data"].(map[string]any)["level"].(string)
}

func TestDependencies(t *testing.T) {
	louder := strings.ReplaceAll(settings, "info", "debug")
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
			s := newStage(t)
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
			s.tells(tt.want...)
			if s.level() != "debug" {
				t.Errorf("level %s", s.level())
			}
			s.reaches("what is left", func(e *v1alpha1.Environment) bool {
				open := strings.Contains(strings.Join(tt.want, " "), "Pending")
				return len(e.Status.PendingRequests) == 0 && (e.Status.LatestDependencySync != "") == open && len(e.Status.ActiveSyncs) == 0
			})
		})
	}
}

// What a Branch and its catalog have both changed waits for somebody to decide, and then goes on with the same record.
func TestConflict(t *testing.T) {
	s := newStage(t, func(e *v1alpha1.Environment) {
		e.Spec.Type = v1alpha1.EnvironmentBranch
		e.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}
	})
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.byHand("web", "web:mine")
	s.offer(2, image(web, "2"), worker)
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.tells("Environment one Completed by jane r1", "Environment two Conflicted by jane r2")
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
	s.tells("Environment one Completed by jane r1", "Environment two Completed by jane r2")
	s.has("web:2")
	if conflicts := s.environment("alice").Status.Conflicts; len(conflicts) > 0 {
		t.Errorf("conflicts %v", conflicts)
	}
}

// byHand has somebody change the image of a Deployment in the target.
func (s *stage) byHand(name, image string) {
	s.Helper()
	client := s.cluster.Client().Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(environmenttest.Target)
	patch := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`,
		name, name, image)
	if _, err := client.Patch(s.Context(), name, types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "joe", Force: new(true)}); err != nil {
		s.Fatal(err)
	}
}

func TestPartialSync(t *testing.T) {
	s := newStage(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}}})
	s.tells("Environment one Completed by jane r1")
	s.reaches("the rest is on offer", func(e *v1alpha1.Environment) bool {
		return len(e.Status.PendingRequests) == 0 && e.Status.ChangedWorkloadCount == 1 && e.Status.AppliedRevision == 0
	})
	s.has("worker:1")
}

func TestDismissalsEndWithASync(t *testing.T) {
	s := newStage(t)
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

func TestPermissionLost(t *testing.T) {
	s := newStage(t, automatic)
	s.lose("jane may not write")
	s.start(0)
	s.held(v1alpha1.ReasonPermissionLost)
	s.tells()
	s.lose("")
	s.applied(1)
}

func TestTargetGone(t *testing.T) {
	for _, create := range []bool{false, true} {
		t.Run(fmt.Sprintf("createNamespace %t", create), func(t *testing.T) {
			s := newStage(t, func(e *v1alpha1.Environment) { e.Spec.CreateNamespace = create })
			s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			s.start(0)
			s.applied(1)
			s.dropNamespace(environmenttest.Target)
			s.stalled(v1alpha1.ReasonTargetNotFound)
			if create {
				// No controller makes the account that pods get.
				s.cluster.Put(environmenttest.Object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop-alice}}"))
			}
			s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
			if !create {
				s.tells("Environment one Completed by jane r1", "Environment two Pending by jane r1")
				s.addNamespace(environmenttest.Target)
			}
			s.tells("Environment one Completed by jane r1", "Environment two Completed by jane r1")
			s.has("web:1 worker:1")
		})
	}
}

func TestObstacles(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*stage)
		reason  string
	}{
		"no catalog": {func(s *stage) {
			s.change(func(e *v1alpha1.Environment) { e.Spec.CatalogRef.Name = "none" })
		}, v1alpha1.ReasonCatalogNotFound},
		"the target of an older one": {func(s *stage) {
			s.change(func(e *v1alpha1.Environment) { e.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute)) })
			older := environmenttest.Environment()
			older.Name, older.UID = "bob", "33333333-3333-3333-3333-333333333333"
			s.addEnvironment(older)
		}, v1alpha1.ReasonTargetTaken},
		"production": {func(s *stage) {
			s.addNamespace(environmenttest.Production)
			s.change(func(e *v1alpha1.Environment) { e.Spec.TargetNamespace = environmenttest.Production })
		}, v1alpha1.ReasonTargetIsSource},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			tt.prepare(s)
			s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			s.start(0)
			s.stalled(tt.reason)
			s.pass(30)
			if told := s.told(); !slices.Contains(told, "Environment one Pending by jane r1") && !slices.Contains(told, "Environment one Pending by jane") {
				t.Errorf("records %q", told)
			}
			s.has("")
		})
	}
}

func TestRediscovery(t *testing.T) {
	s := newStage(t)
	s.start(0)
	s.request(v1alpha1.PendingEnvironmentRequest{ID: "one", Actor: "jane", Type: v1alpha1.EnvironmentRequestRediscover})
	s.reaches("it is done", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.detector.mu.Lock()
	defer s.detector.mu.Unlock()
	if s.detector.rediscovered != 1 {
		t.Errorf("%d times", s.detector.rediscovered)
	}
}

func TestEnd(t *testing.T) {
	const ttl = 10 * time.Minute // On a busy machine, more time passes until the first sync than on another.
	s := newStage(t, automatic, func(e *v1alpha1.Environment) { e.Spec.TTL = &metav1.Duration{Duration: ttl} })
	s.leave("Deployment web is still there")
	s.start(0)
	s.applied(1)
	s.reaches("its time is over", func(e *v1alpha1.Environment) bool {
		ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
		return e.DeletionTimestamp != nil && ready.Reason == v1alpha1.ReasonExpired && strings.Contains(ready.Message, "Deployment web")
	})
	if at := s.environment("alice").DeletionTimestamp; at.Time.Before(noon.Add(ttl)) {
		t.Errorf("deleted at %s", at)
	}
	s.leave()
	s.eventually("it is gone", func() error {
		if _, err := s.get("alice"); err == nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	if !slices.Equal(s.removed, []string{"alice"}) {
		t.Errorf("removed %q", s.removed)
	}
	if told := strings.Join(s.events.told(), "\n"); !strings.Contains(told, "Normal Expired") || !strings.Contains(told, "Normal Synced") {
		t.Errorf("Events:\n%s", told)
	}
}

func TestRateLimit(t *testing.T) {
	s := newStage(t, automatic)
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.MaxSyncsPerMinute = new(int32(1))
	s.keep("syncpolicies", policy)
	s.clock.Step(time.Minute)
	other := environmenttest.Environment()
	other.Name, other.UID, other.Spec.TargetNamespace, other.Spec.AutoSync = "bob", "33333333-3333-3333-3333-333333333333", "shop-bob", true
	s.addNamespace("shop-bob")
	s.addEnvironment(other)
	s.start(0)
	var waited bool
	s.eventually("both are synced", func() error {
		for _, name := range []string{"alice", "bob"} {
			held := meta.FindStatusCondition(s.environment(name).Status.Conditions, v1alpha1.ConditionHeld)
			waited = waited || held != nil && held.Reason == v1alpha1.ReasonRateLimited
		}
		if a, b := s.environment("alice").Status.AppliedRevision, s.environment("bob").Status.AppliedRevision; a+b < 2 {
			return fmt.Errorf("revisions %d and %d", a, b)
		}
		return nil
	})
	if !waited {
		t.Error("neither has said that it waits")
	}
}

// Who deletes an environment does not wait for its run, and leaves nobody to wait for its records.
func TestDeletedWhileItIsSynced(t *testing.T) {
	s := newStage(t, automatic)
	s.cluster.Answer(func(request string) *metav1.Status {
		if request == "PATCH shop-alice/deployments/web" {
			if err := s.delete("alice"); err != nil {
				t.Error(err)
			}
			return environmenttest.Status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
		}
		return s.life.request(request)
	})
	s.start(0)
	s.eventually("it is gone", func() error {
		if _, err := s.get("alice"); err == nil {
			return fmt.Errorf("it is there; records %q", s.told())
		}
		return nil
	})
	for _, record := range s.syncStatuses() {
		if !syncrecord.Ended(record) {
			t.Errorf("nobody goes on with %s", lineOf(record))
		}
	}
	if applied, _, err := copies.New(s.store(), keptRevisions).List(t.Context(), environmenttest.Environment().UID); err != nil || len(applied) > 0 {
		t.Errorf("%v: there still are copies of %d objects", err, len(applied))
	}
}
