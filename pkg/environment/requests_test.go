// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncrecord"
)

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
