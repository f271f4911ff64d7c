// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

func TestWarnings(t *testing.T) {
	claiming := replaced(t, web, "volumes: [", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, "+
		"{name: token, secret: {secretName: token}}, ")
	token := replaced(t, database, "database}", "token}, type: kubernetes.io/service-account-token")
	long := replaced(t, ingress, "web.example", strings.Repeat("a", 63)+".example")
	s := newFixture(t, claiming, object(t, appConfig), object(t, database), object(t, service), token, long)
	s.Environment.Spec.Adapt.IngressHosts.Template = "x{label}.dev.example.com"
	want := []string{
		"Secret token is not copied: token of a ServiceAccount",
		"Ingress web is not copied: no host of its own",
		"PersistentVolumeClaim data is not copied, and shop-alice does not have it: Deployment web refers to it",
	}
	got := s.plan().Warnings
	if len(got) != 4 || !slices.Equal(got[:3], want) || !strings.Contains(got[3], "is copied without the host aaa") {
		t.Errorf("warnings = %q", got)
	}
	s.target.update("jane", object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {volumeName: v}}"))
	if got := s.plan().Warnings; len(got) != 3 {
		t.Errorf("warnings with the claim = %q", got)
	}
}

// TestMissingService references a Service that the source lacks. Pods run without it, so the sync succeeds; the Service is
// copied once it exists.
func TestMissingService(t *testing.T) {
	s := newFixture(t, object(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: peers
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "db:1"}]}}
`))
	p := s.sync()
	want := []string{"Service peers is not in production: StatefulSet db refers to it"}
	if diff := cmp.Diff(want, p.Warnings); diff != "" || len(p.Missing) > 0 {
		t.Errorf("missing %v, reported (-want +got):\n%s", p.Missing, diff)
	}
	s.add(replaced(t, service, "name: web}", "name: peers}"))
	p = s.sync()
	if diff := cmp.Diff([]string{"create Service peers: StatefulSet db refers to it"}, lines(p)); diff != "" || len(p.Warnings) > 0 {
		t.Errorf("reported %q, planned (-want +got):\n%s", p.Warnings, diff)
	}
}

// TestNetworkPolicies checks that policies are copied that select Pods of the environment's workloads, with or without a
// selector.
func TestNetworkPolicies(t *testing.T) {
	policy := func(name, spec string) *unstructured.Unstructured {
		return object(t, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: "+name+"}, spec: {"+spec+"}}")
	}
	s := newFixture(t, object(t, web), object(t, appConfig), object(t, database),
		policy("all", "policyTypes: [Ingress]"), policy("other", "podSelector: {matchLabels: {app: other}}"),
		policy("web", "podSelector: {matchLabels: {app: web}}, ingress: [{from: [{namespaceSelector: {matchExpressions: "+
			"[{key: kubernetes.io/metadata.name, operator: In, values: [production]}]}}]}]"))
	var got []string
	for _, line := range lines(s.sync()) {
		if strings.Contains(line, "NetworkPolicy") {
			got = append(got, line)
		}
	}
	want := []string{"create NetworkPolicy all: it is about Deployment web", "create NetworkPolicy web: it is about Deployment web"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	for key, live := range s.target.objects {
		if text := fmt.Sprint(live.Object["spec"]); key.Name == "web" && key.Kind == "NetworkPolicy" && !strings.Contains(text, "[shop-alice]") {
			t.Errorf("%s admits other namespaces: %s", key, text)
		}
	}
	s.drop("NetworkPolicy", "all")
	if diff := cmp.Diff([]string{"delete NetworkPolicy all: nothing needs it any more"}, lines(s.sync())); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestScaling(t *testing.T) {
	s := newFixture(t, object(t, web), object(t, appConfig), object(t, database), object(t, autoscaler))
	s.Environment.Spec.Adapt.Replicas = v1alpha1.ReplicasAsSource
	s.sync()
	s.edit("kube-controller-manager", "Deployment", "web", func(o *unstructured.Unstructured) { set(t, o, int64(5), "spec", "replicas") })
	if p := s.sync(); len(lines(p)) > 0 {
		t.Errorf("steps for fields of the autoscaler: %q", lines(p))
	}
	s.drop("HorizontalPodAutoscaler", "web")
	s.Revision++
	want := []string{
		"update Deployment web: the catalog offers it /metadata/labels/configbutler.ai~1revision /spec/replicas",
		"delete HorizontalPodAutoscaler web: nothing needs it any more",
	}
	if diff := cmp.Diff(want, lines(s.sync())); diff != "" {
		t.Errorf("steps without the autoscaler: want -, got +:\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	s := shop(t)
	s.put(replaced(t, web, "web:1", "web:2"))
	s.put(replaced(t, database, "aHVudGVyMg==", "c3dvcmRmaXNo"))
	s.put(replaced(t, appConfig, "info", "debug"))
	s.drop("CronJob", "report")
	s.add(object(t, autoscaler))
	p := s.plan()
	changes := []v1alpha1.WorkloadChange{
		{Kind: "CronJob", Name: "report", ChangeType: v1alpha1.ChangeRemoved},
		{Kind: "Deployment", Name: "web", ChangeType: v1alpha1.ChangeChanged},
	}
	if diff := cmp.Diff(changes, workloads(p)); diff != "" {
		t.Errorf("changed workloads: want -, got +:\n%s", diff)
	}
	counts := []v1alpha1.DependencyCount{{Type: "ConfigMap", Count: 1}, {Type: "Secret", Count: 1}}
	if _, others := plan.Prompt(p.Changes(plan.HideSecrets)); !slices.Equal(others, counts) {
		t.Errorf("other changes = %v, want %v", others, counts)
	}
	if all := p.Summaries(); len(all) != 6 || p.Unchanged() != 2 {
		t.Errorf("%d objects change (%v), %d are unchanged", len(all), all, p.Unchanged())
	}
	hidden, shown := p.Changes(plan.HideSecrets)[1].Fields[0], p.Changes(plan.ShowSecrets)[1].Fields[0]
	if !hidden.Hidden || hidden.Before != nil || hidden.After != nil || hidden.Field != "/data/password" {
		t.Errorf("hidden changes = %+v", hidden)
	}
	if shown.Hidden || *shown.Before != `"aHVudGVyMg=="` || *shown.After != `"c3dvcmRmaXNo"` ||
		!slices.Equal(shown.Owners, []string{"slipstream"}) {
		t.Errorf("shown changes = %+v", shown)
	}
}

// workloads returns the workloads of a plan's prompt.
func workloads(p *plan.Plan) []v1alpha1.WorkloadChange {
	changed, _ := plan.Prompt(p.Changes(plan.HideSecrets))
	return changed
}

// TestPromptCountsAttachedObjects checks that objects that belong to workloads, such as autoscalers, are counted while the workloads do not
// change. They are news until they have been written, but not if a user has changed them in the target.
func TestPromptCountsAttachedObjects(t *testing.T) {
	s := shop(t)
	s.add(object(t, autoscaler))
	added := s.plan()
	changed, others := plan.Prompt(added.Changes(plan.HideSecrets))
	if want := []v1alpha1.DependencyCount{{Type: "HorizontalPodAutoscaler", Count: 1}}; len(changed) > 0 || !slices.Equal(others, want) ||
		added.OtherChangesHash == "" {
		t.Errorf("new autoscaler: %v and %v, news %q", changed, others, added.OtherChangesHash)
	}
	s.sync()
	live := s.target.objects[plan.KeyOf(object(t, autoscaler))].DeepCopy()
	live.Object["spec"].(map[string]any)["maxReplicas"] = int64(99)
	s.target.update("jane", live)
	drifted := s.plan()
	if _, others := plan.Prompt(drifted.Changes(plan.HideSecrets)); len(others) != 1 || drifted.OtherChangesHash != "" {
		t.Errorf("autoscaler changed by jane: %v, news %q", others, drifted.OtherChangesHash)
	}
	s.sync()
	s.drop("HorizontalPodAutoscaler", "web")
	removed := s.plan()
	if _, others := plan.Prompt(removed.Changes(plan.HideSecrets)); len(others) != 1 || removed.OtherChangesHash == "" {
		t.Errorf("deleted autoscaler: %v, news %q", others, removed.OtherChangesHash)
	}
}

// TestPromptCountsMissingObjects checks that objects that the source has lost are counted, although their copies are kept.
func TestPromptCountsMissingObjects(t *testing.T) {
	s := shop(t)
	s.drop("ConfigMap", "app-config")
	p := s.plan()
	changed, others := plan.Prompt(p.Changes(plan.HideSecrets))
	if want := []v1alpha1.DependencyCount{{Type: "ConfigMap", Count: 1}}; len(changed) > 0 || !slices.Equal(others, want) {
		t.Errorf("changes = %v and %v, want %v", changed, others, want)
	}
	change := p.Changes(plan.HideSecrets)[0]
	const refusal = "Failed to sync ConfigMap 'app-config' from production - does not exist, and the copy stays"
	if change.Action != v1alpha1.SyncActionCluster || change.ChangeType != v1alpha1.ChangeRemoved || change.Refusal != refusal {
		t.Errorf("change = %+v", change)
	}
}
