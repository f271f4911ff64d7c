// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

func TestReported(t *testing.T) {
	claiming := replaced(t, web, "volumes: [", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}, "+
		"{name: token, secret: {secretName: token}}, ")
	token := replaced(t, database, "database}", "token}, type: kubernetes.io/service-account-token")
	long := replaced(t, ingress, "web.example", strings.Repeat("a", 63)+".example")
	s := newStage(t, claiming, object(t, appConfig), object(t, database), object(t, service), token, long)
	s.Environment.Spec.Adapt.IngressHosts.Template = "x{label}.dev.example.com"
	want := []string{
		"Secret token is not copied: token of a ServiceAccount",
		"PersistentVolumeClaim data is not copied, and shop-alice does not have it: Deployment web refers to it",
	}
	got := s.plan().Reported
	if len(got) != 3 || !slices.Equal(got[:2], want) || !strings.Contains(got[2], "is copied without the host aaa") {
		t.Errorf("%q", got)
	}
	s.target.update("jane", object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {volumeName: v}}"))
	if got := s.plan().Reported; len(got) != 2 {
		t.Errorf("with the claim: %q", got)
	}
}

// TestServiceThatIsMissing has a StatefulSet name a Service that the source does not have. Its pods run without, and so the
// environment is synced; the Service is copied once it exists.
func TestServiceThatIsMissing(t *testing.T) {
	s := newStage(t, object(t, `
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
	if diff := cmp.Diff(want, p.Reported); diff != "" || len(p.Missing) > 0 {
		t.Errorf("missing %v, reported (-want +got):\n%s", p.Missing, diff)
	}
	s.add(replaced(t, service, "name: web}", "name: peers}"))
	p = s.sync()
	if diff := cmp.Diff([]string{"create Service peers: StatefulSet db refers to it"}, lines(p)); diff != "" || len(p.Reported) > 0 {
		t.Errorf("reported %q, planned (-want +got):\n%s", p.Reported, diff)
	}
}

func TestScaling(t *testing.T) {
	s := newStage(t, object(t, web), object(t, appConfig), object(t, database), object(t, autoscaler))
	s.Environment.Spec.Adapt.Replicas = v1alpha1.ReplicasAsSource
	s.sync()
	s.edit("kube-controller-manager", "Deployment", "web", func(o *unstructured.Unstructured) { set(t, o, int64(5), "spec", "replicas") })
	if p := s.sync(); len(lines(p)) > 0 {
		t.Errorf("what the autoscaler set: %q", lines(p))
	}
	s.drop("HorizontalPodAutoscaler", "web")
	s.Revision++
	want := []string{
		"update Deployment web: the catalog offers it /metadata/labels/configbutler.ai~1revision /spec/replicas",
		"delete HorizontalPodAutoscaler web: nothing needs it any more",
	}
	if diff := cmp.Diff(want, lines(s.sync())); diff != "" {
		t.Errorf("without the autoscaler: want -, got +:\n%s", diff)
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
	if diff := cmp.Diff(changes, p.Workloads()); diff != "" {
		t.Errorf("workloads: want -, got +:\n%s", diff)
	}
	counts := []v1alpha1.DependencyCount{{Type: "ConfigMap", Count: 1}, {Type: "Secret", Count: 1}}
	if diff := cmp.Diff(counts, p.Dependencies(v1alpha1.SyncActionCluster)); diff != "" {
		t.Errorf("dependencies: want -, got +:\n%s", diff)
	}
	if all := p.Summaries(); len(all) != 6 || p.Unchanged() != 2 {
		t.Errorf("%d objects change (%v), %d do not", len(all), all, p.Unchanged())
	}
	hidden, shown := p.Changes(plan.HideSecrets)[1].Fields[0], p.Changes(plan.ShowSecrets)[1].Fields[0]
	if !hidden.Hidden || hidden.Before != nil || hidden.After != nil || hidden.Field != "/data/password" {
		t.Errorf("hidden: %+v", hidden)
	}
	if shown.Hidden || *shown.Before != `"aHVudGVyMg=="` || *shown.After != `"c3dvcmRmaXNo"` ||
		!slices.Equal(shown.Owners, []string{"slipstream"}) {
		t.Errorf("shown: %+v", shown)
	}
}
