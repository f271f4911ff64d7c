// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedby determines which tool manages an object, and whether a change bypassed it.
package managedby

import (
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// Of returns what manages an object, by the marks that tools leave on it; nil if there are none. Of several, it is the one that would revert
// a change: Flux and Argo CD before Helm, which they may use, and before the owner.
func Of(object *unstructured.Unstructured) *v1alpha1.ChangeManager {
	for _, of := range [...]func(*unstructured.Unstructured) *v1alpha1.ChangeManager{flux, argoCD, helm, owner} {
		if manager := of(object); manager != nil {
			return manager
		}
	}
	return nil
}

// flux reads the labels of Flux: https://fluxcd.io/flux/faq/, "How to find which Kustomization manages an object".
func flux(object *unstructured.Unstructured) *v1alpha1.ChangeManager {
	labels := object.GetLabels()
	for _, mark := range [...]struct{ prefix, kind string }{
		{"kustomize.toolkit.fluxcd.io", "Kustomization"}, {"helm.toolkit.fluxcd.io", "HelmRelease"},
	} {
		if name := labels[mark.prefix+"/name"]; name != "" {
			return &v1alpha1.ChangeManager{
				Tool: v1alpha1.ManagedByFlux, Kind: mark.kind, Namespace: labels[mark.prefix+"/namespace"], Name: name,
			}
		}
	}
	return nil
}

// argoCD reads the tracking annotation of Argo CD, as in "shop:apps/Deployment:shop/web", or its label. An Application outside the namespace of
// Argo CD is written as "team_shop".
func argoCD(object *unstructured.Unstructured) *v1alpha1.ChangeManager {
	name, _, tracked := strings.Cut(object.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	if !tracked || object.GetKind() == "Secret" { // Other annotations of Secrets than harmless ones are not published.
		name = object.GetLabels()["argocd.argoproj.io/instance"]
	}
	if name == "" {
		return nil
	}
	manager := &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByArgoCD, Kind: "Application", Name: name}
	if namespace, rest, found := strings.Cut(name, "_"); found {
		manager.Namespace, manager.Name = namespace, rest
	}
	return manager
}

// helm reads what Helm requires of the objects of a release.
func helm(object *unstructured.Unstructured) *v1alpha1.ChangeManager {
	annotations := object.GetAnnotations()
	name := annotations["meta.helm.sh/release-name"]
	if name == "" || object.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" {
		return nil
	}
	return &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByHelm, Namespace: annotations["meta.helm.sh/release-namespace"], Name: name}
}

// owner reads the owner reference of the controller.
func owner(object *unstructured.Unstructured) *v1alpha1.ChangeManager {
	reference := metav1.GetControllerOfNoCopy(object)
	if reference == nil {
		return nil
	}
	return &v1alpha1.ChangeManager{
		Tool: v1alpha1.ManagedByOwner, Kind: reference.Kind, Namespace: object.GetNamespace(), Name: reference.Name,
	}
}

// LastManager returns the field manager that last changed an object, apart from its status; empty if it is not known.
func LastManager(object *unstructured.Unstructured) string {
	last, name := "", ""
	for entry, at := range writes(object) {
		if at >= last {
			last = at
			name, _ = entry["manager"].(string)
		}
	}
	return name
}

// SetByLastWrite reports whether the last write of an object may have set an annotation: its field manager made that write. Without
// managedFields it may have.
func SetByLastWrite(object *unstructured.Unstructured, annotation string) bool {
	last, set := "", ""
	for entry, at := range writes(object) {
		last = max(last, at)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if _, owned, _ := unstructured.NestedFieldNoCopy(fields, "f:metadata", "f:annotations", "f:"+annotation); owned {
			set = max(set, at)
		}
	}
	return set == last
}

// writes are the managedFields of an object that are not about its status, with their times, whose order is that of their texts. Decoding
// all of them would take longer than everything else that is done for a change.
func writes(object *unstructured.Unstructured) iter.Seq2[map[string]any, string] {
	return func(yield func(map[string]any, string) bool) {
		all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
		entries, _ := all.([]any)
		for _, each := range entries {
			entry, _ := each.(map[string]any)
			at, _ := entry["time"].(string)
			if entry["subresource"] != "status" && at != "" && !yield(entry, at) {
				return
			}
		}
	}
}

// tools has, by tool, the field managers and the service accounts, regardless of their namespace, that write for it.
var tools = map[v1alpha1.ManagingTool]struct{ managers, accounts []string }{
	v1alpha1.ManagedByFlux: {
		[]string{"kustomize-controller", "helm-controller", "flux"}, []string{"kustomize-controller", "helm-controller"},
	},
	v1alpha1.ManagedByArgoCD: {
		[]string{"argocd-controller", "argocd-application-controller", "argocd-server"},
		[]string{"argocd-application-controller", "argocd-server"},
	},
	v1alpha1.ManagedByHelm: {[]string{"helm", "Helm", "terraform-provider-helm", "helm-controller"}, nil},
}

// Bypass reports whether a change of an object that manager manages was made by another user: a person, or a service account that does
// not belong to the tool. lastManager is the field manager of the change, empty if it is not known. If the change may have been the
// tool's, Bypass returns false: Kubernetes itself, an unknown author, and for an object with an owner every service account, since that
// of the owner's controller is not known. A deletion has no field manager, so that of an object of Helm, which persons run, is none. An edit
// that only removes fields leaves no field manager either, so it is taken for one of the manager before.
func Bypass(manager *v1alpha1.ChangeManager, author attribution.Author, lastManager string) bool {
	if manager == nil || !author.Known() || isOfKubernetes(author.Username) {
		return false
	}
	account, isAccount := strings.CutPrefix(author.Username, "system:serviceaccount:")
	if manager.Tool == v1alpha1.ManagedByOwner {
		return !isAccount
	}
	tool := tools[manager.Tool]
	_, name, _ := strings.Cut(account, ":")
	switch {
	case slices.Contains(tool.managers, lastManager), isAccount && slices.Contains(tool.accounts, name),
		slices.Contains(tool.accounts, author.ImpersonatedBy[strings.LastIndex(author.ImpersonatedBy, ":")+1:]):
		return false
	case lastManager == "":
		return manager.Tool != v1alpha1.ManagedByHelm
	}
	return true
}

// isOfKubernetes reports whether a user is a part of Kubernetes, such as the controller that scales Deployments.
func isOfKubernetes(username string) bool {
	for _, prefix := range [...]string{"system:serviceaccount:kube-system:", "system:kube-", "system:node:", "system:apiserver"} {
		if strings.HasPrefix(username, prefix) {
			return true
		}
	}
	return false
}
