// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// TestThePromptIsTheSummaryOfTheDiff changes the source, the catalog and the environment, dismisses prompts, rolls back and requests syncs
// at random. After each step, the status must match the subresource diff, and STATE must be Synced only if the diff is empty.
func TestThePromptIsTheSummaryOfTheDiff(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := truth{fixture: newFixture(t), Rand: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
			l.start(0)
			l.planner = syncer.NewPreviewer(l.runner())
			l.ask("first", "jane", v1alpha1.SyncRequestSpec{})
			l.applied(1)
			for step := range 25 {
				l.check(l.happen(step))
			}
			t.Log(l.done)
		})
	}
}

// truth is an environment whose source is changed by others.
type truth struct {
	*fixture
	*rand.Rand
	planner *syncer.Previewer
	// revision is the newest revision of the catalog.
	revision int64
	done     map[string]int
}

func (l *truth) oneOf(words ...string) string { return words[l.IntN(len(words))] }

// happen makes a random change, and returns its description.
func (l *truth) happen(step int) (what string) {
	l.Helper()
	switch l.IntN(9) {
	case 0:
		what = "a ConfigMap changes"
		l.produce(strings.ReplaceAll(configMap, "info", l.oneOf("info", "debug", "trace")))
		if l.environment("alice").Status.LatestDependencySync == "" {
			l.prompt(fmt.Sprint("batch-", step))
		}
	case 1, 2:
		what = l.attached()
	case 3:
		what = "the catalog offers another revision"
		l.revision = max(l.revision, 1) + 1
		workloads := []string{image(web, l.oneOf("1", "2", "3")), image(worker, l.oneOf("1", "2"))}
		l.offer(l.revision, workloads[:1+l.IntN(2)]...)
	case 4:
		what = "the spec is edited"
		patch := fmt.Sprintf("{%s: %s}", "data", l.oneOf("{level: mine}", "{own: '1'}"))
		l.edit("jane", func(spec *v1alpha1.EnvironmentSpec) {
			spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTarget{Kind: "ConfigMap"}, Type: v1alpha1.PatchStrategicMerge, Patch: patch}}
			spec.Patches = spec.Patches[:l.IntN(2)]
		}, "patches")
	case 5:
		what = "prompts are dismissed"
		l.dismiss()
	case 6:
		what = "what was dismissed is offered again"
		l.change(func(e *v1alpha1.Environment) {
			e.Status.DismissedCatalogSync, e.Status.DismissedDependencySync, e.Status.Dismissals = "", "", 0
		})
	case 7:
		what = l.pin()
	default:
		action := v1alpha1.SyncAction(l.oneOf("All", "Catalog", "Cluster"))
		what = "a sync: " + string(action)
		l.ask(fmt.Sprint("sync-", step), "jane", v1alpha1.SyncRequestSpec{Action: action})
	}
	l.detector.changed("alice")
	l.done[what]++
	return what
}

// attached changes an object in the source that belongs to workloads.
func (l *truth) attached() string {
	l.Helper()
	kind := l.oneOf("HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "NetworkPolicy", "Service")
	n := 1 + l.IntN(3)
	of := map[string][2]string{
		"HorizontalPodAutoscaler": {"horizontalpodautoscalers", fmt.Sprintf(
			"{apiVersion: autoscaling/v2, spec: {maxReplicas: %d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}", n)},
		"PodDisruptionBudget": {"poddisruptionbudgets", fmt.Sprintf(
			"{apiVersion: policy/v1, spec: {minAvailable: %d, selector: {matchLabels: {app: web}}}}", n)},
		"Service": {
			"services", fmt.Sprintf("{apiVersion: v1, spec: {selector: {app: web}, ports: [{port: %d, protocol: TCP, targetPort: 80}]}}", 80+n),
		},
		"Ingress": {"ingresses", fmt.Sprintf("{apiVersion: networking.k8s.io/v1, spec: {rules: [{host: web.example.com, "+
			"http: {paths: [{path: /%d, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}", n)},
		"NetworkPolicy": {"networkpolicies", fmt.Sprintf(
			"{apiVersion: networking.k8s.io/v1, spec: {podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: %d}]}]}}", 80+n)},
	}[kind]
	if kind != "Service" && l.IntN(3) == 0 {
		l.cluster.Drop(of[0], environmenttest.Production, "web")
		return "no " + kind
	}
	o := l.object(of[1][:len(of[1])-1] + ", kind: " + kind + ", metadata: {name: web}}")
	l.cluster.Put(o)
	return "another " + kind
}

// dismiss dismisses a prompt like the subresource.
func (l *truth) dismiss() {
	l.Helper()
	e := l.environment("alice")
	record := e.Status.LatestDependencySync
	for _, r := range l.syncStatuses() {
		if r.Name != record || r.Status.State != v1alpha1.SyncStatePending {
			continue
		}
		moved, err := syncstatus.Move(r, syncstatus.Step{To: v1alpha1.SyncStateDismissed, By: "jane", At: l.clock.Now()})
		if err == nil {
			_, err = l.api.Write(l.Context(), moved)
		}
		if err != nil {
			l.Fatal(err)
		}
	}
	l.change(func(e *v1alpha1.Environment) {
		if e.Status.DismissedCatalogSync = e.Status.LatestCatalogSync; record != "" && e.Status.LatestDependencySync == record {
			e.Status.LatestDependencySync, e.Status.DismissedDependencySync = "", record
		}
		e.Status.Dismissals++
	})
}

// pin pins a revision, or removes the pin.
func (l *truth) pin() string {
	l.Helper()
	e := l.environment("alice")
	if e.Spec.PinnedRevision != nil || len(e.Status.History) < 2 {
		l.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, pinField)
		return "forward again"
	}
	to := e.Status.History[1+l.IntN(len(e.Status.History)-1)].Revision
	l.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = &to }, pinField)
	return "back to an earlier revision"
}

// check waits until no sync is running and the status matches the diff.
func (l *truth) check(after string) {
	l.Helper()
	l.eventually("after: "+after, func() error {
		e := l.environment("alice")
		if status := &e.Status; status.ObservedGeneration != e.Generation || len(status.PendingRequests)+len(status.ActiveSyncs) > 0 {
			return fmt.Errorf("not idle: %q", l.recordLines())
		}
		diff, err := l.planner.Diff(l.Context(), e)
		if err != nil {
			return err
		}
		workloads, others := summary(diff.Changes)
		if d := cmp.Diff(workloads, e.Status.ChangedWorkloads); d != "" {
			return fmt.Errorf("%s, workloads (-diff +status):\n%s", e.Status.State, d)
		}
		if d := cmp.Diff(others, e.Status.ChangedDependencies); d != "" {
			return fmt.Errorf("%s, other objects (-diff +status):\n%s", e.Status.State, d)
		}
		isSynced := strings.HasPrefix(e.Status.State, "Synced")
		if trouble := e.Status.LastError != nil ||
			slices.ContainsFunc(e.Status.Conditions, isStalled); !trouble && isSynced != (len(diff.Changes) == 0) {
			return fmt.Errorf("STATE = %q, but the diff has %d changes", e.Status.State, len(diff.Changes))
		}
		return nil
	})
}

func isStalled(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionStalled }

// summary is the summary of a diff.
func summary(changes []v1alpha1.ObjectChange) (workloads []v1alpha1.WorkloadChange, others []v1alpha1.DependencyCount) {
	byKind := map[string]int32{}
	for _, c := range changes {
		if c.Kind == "Deployment" {
			workloads = append(workloads, v1alpha1.WorkloadChange{Kind: "Deployment", Name: c.Name, ChangeType: c.ChangeType})
		}
	}
	for _, c := range changes {
		if c.Kind != "Deployment" && (c.Action == v1alpha1.SyncActionCluster || len(workloads) == 0) {
			byKind[c.Kind]++
		}
	}
	for kind, count := range byKind {
		others = append(others, v1alpha1.DependencyCount{Type: v1alpha1.CountedType(kind), Count: count})
	}
	slices.SortFunc(workloads, func(a, b v1alpha1.WorkloadChange) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(others, func(a, b v1alpha1.DependencyCount) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return workloads, others
}
