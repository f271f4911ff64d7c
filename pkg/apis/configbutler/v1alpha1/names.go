// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// CatalogWorkloadName returns the name of the CatalogWorkload of a workload in a catalog. Names are unique, because the
// names of catalogs have no dots.
func CatalogWorkloadName(catalog string, kind WorkloadKind, name string) string {
	return catalog + "." + strings.ToLower(string(kind)) + "." + name
}

// NamespacedName returns the name of the object that a referring object in a namespace means.
func (r ObjectReference) NamespacedName(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(r.Namespace, namespace), Name: r.Name}
}

// FieldManager is the manager of the fields that environments write.
const FieldManager = "slipstream"

// EnvironmentDependencyName returns the name of the EnvironmentDependency of an object in an environment's target. Names
// are unique, because the names of environments have no dots. A name that would be too long is shortened and ends with a
// hash.
func EnvironmentDependencyName(environment string, of DependencyType, name string) string {
	const hashed = 16
	full := environment + "." + strings.ToLower(string(of)) + "." + name
	if len(full) <= utilvalidation.DNS1123SubdomainMaxLength {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	kept := strings.TrimRight(full[:utilvalidation.DNS1123SubdomainMaxLength-hashed-1], "-.")
	return kept + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Branches returns the branch that a destination writes and, if that is proposed to another, the other one.
func (d *GitDestination) Branches() (written, base string) {
	delivery := d.PullRequest()
	if delivery == nil {
		return d.Spec.Branch, ""
	}
	return delivery.BranchPrefix + d.Namespace + "/" + d.Name, d.Spec.Branch
}

// PullRequest returns the delivery of a destination by pull request; nil if its changes are pushed.
func (d *GitDestination) PullRequest() *PullRequestDelivery {
	switch delivery := d.Spec.Delivery; {
	case delivery == nil || delivery.Type != DeliveryPullRequest:
		return nil
	case delivery.PullRequest == nil: // It has not been given its defaults.
		return &PullRequestDelivery{BranchPrefix: DefaultBranchPrefix}
	default:
		return delivery.PullRequest
	}
}

// WorkloadResources returns the resources of the kinds of workloads.
func WorkloadResources() map[WorkloadKind]schema.GroupResource {
	return map[WorkloadKind]schema.GroupResource{
		WorkloadDeployment:  {Group: "apps", Resource: "deployments"},
		WorkloadStatefulSet: {Group: "apps", Resource: "statefulsets"},
		WorkloadDaemonSet:   {Group: "apps", Resource: "daemonsets"},
		WorkloadReplicaSet:  {Group: "apps", Resource: "replicasets"},
		WorkloadJob:         {Group: "batch", Resource: "jobs"},
		WorkloadCronJob:     {Group: "batch", Resource: "cronjobs"},
	}
}

// IsCustomGroup reports whether environments may copy objects of an API group named in spec.include. It returns false for
// groups of Kubernetes, of platforms that grant permissions by kinds of their own, and for this group. Groups of
// Kubernetes have no dot, or end with .k8s.io; platforms are OpenShift and Rancher, with openshift.io, cattle.io, and
// groups that end with .openshift.io or .cattle.io.
func IsCustomGroup(group string) bool {
	if !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || group == GroupName {
		return false
	}
	return !slices.ContainsFunc([]string{"openshift.io", "cattle.io"}, func(platform string) bool {
		return group == platform || strings.HasSuffix(group, "."+platform)
	})
}

var vowelAndY = regexp.MustCompile(`[aeiou]y$`)

// Resource returns the resource of the object as derived from its kind: an object of a kind with another resource is not
// copied.
func (o IncludedObject) Resource() schema.GroupVersionResource {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	if kind := strings.ToLower(o.Kind); vowelAndY.MatchString(kind) {
		resource.Resource = kind + "s" // UnsafeGuessKindToResource says gatewaies.
	}
	return resource
}
