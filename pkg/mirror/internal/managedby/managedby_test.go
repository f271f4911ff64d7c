// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package managedby_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/internal/managedby"
)

// object returns a Deployment shop/web with marks.
func object(mark func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	o.SetNamespace("shop")
	o.SetName("web")
	mark(o)
	return o
}

func TestOf(t *testing.T) {
	flux := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
	release := map[string]string{"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "data"}
	byHelm := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	owners := []metav1.OwnerReference{{Kind: "Service", Name: "other"}, {Kind: "Postgresql", Name: "db", Controller: ptr.To(true)}}
	for name, tt := range map[string]struct {
		mark func(*unstructured.Unstructured)
		want *v1alpha1.ChangeManager
	}{
		"nothing": {func(*unstructured.Unstructured) {}, nil},
		"a Kustomization": {
			func(o *unstructured.Unstructured) { o.SetLabels(flux) },
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Kind: "Kustomization", Namespace: "flux-system", Name: "shop"},
		},
		"a HelmRelease, which marks a release as well": {
			func(o *unstructured.Unstructured) {
				o.SetAnnotations(release)
				o.SetLabels(map[string]string{
					"helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "flux-system", "app.kubernetes.io/managed-by": "Helm",
				})
			},
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Kind: "HelmRelease", Namespace: "flux-system", Name: "db"},
		},
		"an Application": {
			func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "store:apps/Deployment:shop/web"})
			},
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByArgoCD, Kind: "Application", Name: "store"},
		},
		"a Secret, whose annotations may quote its values": {
			func(o *unstructured.Unstructured) {
				o.SetKind("Secret")
				o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "hunter2:/Secret:shop/web"})
			},
			nil,
		},
		"an Application of a team, by its label": {
			func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"argocd.argoproj.io/instance": "team_store"})
			},
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByArgoCD, Kind: "Application", Namespace: "team", Name: "store"},
		},
		"a release": {
			func(o *unstructured.Unstructured) { o.SetAnnotations(release); o.SetLabels(byHelm) },
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByHelm, Namespace: "data", Name: "db"},
		},
		"a label of Helm without a release": {func(o *unstructured.Unstructured) { o.SetLabels(byHelm) }, nil},
		"an owner": {
			func(o *unstructured.Unstructured) { o.SetOwnerReferences(owners) },
			&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByOwner, Kind: "Postgresql", Namespace: "shop", Name: "db"},
		},
		"an owner that is not the controller": {func(o *unstructured.Unstructured) { o.SetOwnerReferences(owners[:1]) }, nil},
	} {
		if diff := cmp.Diff(tt.want, managedby.Of(object(tt.mark))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLastManager(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	entry := func(manager, subresource string, seconds int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at}
	}
	got := managedby.LastManager(object(func(o *unstructured.Unstructured) {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry("kubectl-edit", "", 5), entry("helm", "", 1), entry("kube-controller-manager", "status", 9), {Manager: "old"},
		})
	}))
	if got != "kubectl-edit" {
		t.Errorf("the last manager is %q", got)
	}
	if got := managedby.LastManager(object(func(*unstructured.Unstructured) {})); got != "" {
		t.Errorf("without managedFields it is %q", got)
	}
}

func TestSetByLastWrite(t *testing.T) {
	const annotation = "kubernetes.io/change-cause"
	entry := func(manager, at, subresource string, annotated bool) any {
		fields := map[string]any{"f:spec": map[string]any{}}
		if annotated {
			fields["f:metadata"] = map[string]any{"f:annotations": map[string]any{"f:" + annotation: map[string]any{}}}
		}
		return map[string]any{"manager": manager, "time": at, "subresource": subresource, "fieldsV1": fields}
	}
	for name, tt := range map[string]struct {
		entries []any
		want    bool
	}{
		"no managedFields": {nil, true},
		"set with the change": {[]any{
			entry("helm", "2026-11-26T12:00:00Z", "", false), entry("kubectl-edit", "2026-11-26T12:00:05Z", "", true),
			entry("kube-controller-manager", "2026-11-26T12:00:09Z", "status", false),
		}, true},
		"set before the change": {[]any{
			entry("kubectl-annotate", "2026-11-26T12:00:00Z", "", true), entry("kubectl-set", "2026-11-26T12:00:05Z", "", false),
		}, false},
		"of no manager": {[]any{entry("helm", "2026-11-26T12:00:00Z", "", false)}, false},
	} {
		got := managedby.SetByLastWrite(object(func(o *unstructured.Unstructured) {
			if tt.entries != nil {
				o.Object["metadata"].(map[string]any)["managedFields"] = tt.entries
			}
		}), annotation)
		if got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestBypass(t *testing.T) {
	const account = "system:serviceaccount:"
	for _, tt := range []struct {
		tool          v1alpha1.ManagingTool
		user, manager string
		want          bool
		situation     string
	}{
		{v1alpha1.ManagedByFlux, "jane", "kubectl-edit", true, "a person edits"},
		{v1alpha1.ManagedByFlux, "jane", "kustomize-controller", false, "Flux impersonates"},
		{v1alpha1.ManagedByFlux, account + "flux-system:kustomize-controller", "", false, "Flux deletes"},
		{v1alpha1.ManagedByFlux, account + "ci:deployer", "kubectl", true, "another account writes"},
		{v1alpha1.ManagedByFlux, "jane", "", true, "a person deletes"},
		{v1alpha1.ManagedByFlux, "system:admin", "k9s", true, "the administrator of a small cluster edits"},
		{v1alpha1.ManagedByFlux, account + "kube-system:horizontal-pod-autoscaler", "kube-controller-manager", false, "Kubernetes scales"},
		{v1alpha1.ManagedByFlux, "system:node:one", "kubelet", false, "a node writes"},
		{v1alpha1.ManagedByFlux, "", "kubectl-edit", false, "the author is not known"},
		{v1alpha1.ManagedByArgoCD, account + "argocd:argocd-application-controller", "argocd-controller", false, "Argo CD applies"},
		{v1alpha1.ManagedByArgoCD, "bob", "kubectl-scale", true, "a person scales"},
		{v1alpha1.ManagedByHelm, "jane", "helm", false, "a person upgrades a release"},
		{v1alpha1.ManagedByHelm, "jane", "kubectl-patch", true, "a person patches"},
		{v1alpha1.ManagedByHelm, "jane", "", false, "a person deletes, perhaps with helm uninstall"},
		{v1alpha1.ManagedByOwner, account + "operators:postgres", "postgres", false, "an operator"},
		{v1alpha1.ManagedByOwner, "jane", "kubectl-edit", true, "a person edits"},
	} {
		author := attribution.Author{Actor: attribution.Actor{Username: tt.user}, Signal: attribution.Audit}
		if got := managedby.Bypass(&v1alpha1.ChangeManager{Tool: tt.tool, Name: "x"}, author, tt.manager); got != tt.want {
			t.Errorf("%s, %s: bypass is %t", tt.tool, tt.situation, got)
		}
	}
	impersonated := attribution.Author{
		Actor: attribution.Actor{
			Username: account + "team:reconciler", ImpersonatedBy: account + "flux-system:kustomize-controller",
		}, Signal: attribution.Audit,
	}
	if managedby.Bypass(&v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Name: "x"}, impersonated, "") {
		t.Error("a deletion by Flux as the account of a tenant is a bypass")
	}
	jane := attribution.Author{Actor: attribution.Actor{Username: "jane"}, Signal: attribution.Audit}
	if managedby.Bypass(nil, jane, "kubectl") {
		t.Error("a bypass of nothing")
	}
}
