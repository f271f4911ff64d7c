// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// writeVerbs are what keeping objects as they should be takes.
var writeVerbs = []string{"create", "patch", "delete"}

// OfEnvironment is to use the catalog of an environment, to write in its target what a sync may write there, and to read the
// Secrets that it copies, and the ConfigMaps that its patches may name. Of a catalog that is not there, nil, nothing is known of
// what it offers: who syncs is asked again when it is.
//
// What the catalog's workloads refer to beside Secrets takes no right to read it: the catalog's editor, who must have that, consents
// to it.
func OfEnvironment(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	permissions := []Permission{usesCatalog(e)}
	permissions = append(permissions, copiesSecrets(e, catalog)...)
	permissions = append(permissions, copiesConfigMaps(e, catalog)...)
	if e.Spec.CreateNamespace {
		permissions = append(permissions, Permission{
			Verbs: []string{"create"}, Resources: []string{"namespaces"},
			Cause: onBehalf, Remedy: "or have the namespace made by somebody who may, and leave out spec.createNamespace",
		})
	}
	return append(permissions, writes(e, catalog)...)
}

// OfAccount is to act as the account for which an environment is synced by itself, if it names one. Who names it lets it do what
// syncs will take later.
func OfAccount(e *v1alpha1.Environment) []Permission {
	if e.Spec.ServiceAccountName == "" {
		return nil
	}
	return []Permission{{
		Verbs: []string{"impersonate"}, Namespace: e.Namespace, Resources: []string{"serviceaccounts"}, Name: e.Spec.ServiceAccountName,
		Cause: "whose permissions automatic syncs would have", Remedy: "or leave out spec.serviceAccountName",
	}}
}

// catalogOf is where an environment's catalog is.
func catalogOf(e *v1alpha1.Environment) (namespace, name string) {
	return cmp.Or(e.Spec.CatalogRef.Namespace, e.Namespace), e.Spec.CatalogRef.Name
}

func usesCatalog(e *v1alpha1.Environment) Permission {
	namespace, name := catalogOf(e)
	return Permission{
		Verbs: []string{"get"}, Namespace: namespace, Group: v1alpha1.GroupName, Resources: []string{"appcatalogs"}, Name: name,
		Cause: onBehalf, Remedy: "or let spec.catalogRef name a catalog that you may read",
	}
}

// OfCopying is what the requester of a sync must be allowed to read, so that it is copied, by type.
func OfCopying(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) map[v1alpha1.DependencyType]Permission {
	permissions := map[v1alpha1.DependencyType]Permission{}
	for _, p := range copiesSecrets(e, catalog) {
		permissions[v1alpha1.DependencySecret] = p
	}
	for _, p := range copiesConfigMaps(e, catalog) {
		permissions[v1alpha1.DependencyConfigMap] = p
	}
	return permissions
}

// OfPatched is what the requester of a refresh must be allowed to read, so that an object of a type is copied to which only patches
// of the environment refer, or referred when it was last synced; false for types that take no right.
func OfPatched(catalog *v1alpha1.AppCatalog, of v1alpha1.DependencyType) (Permission, bool) {
	resources := map[v1alpha1.DependencyType]string{v1alpha1.DependencySecret: "secrets", v1alpha1.DependencyConfigMap: "configmaps"}
	if resources[of] == "" {
		return Permission{}, false
	}
	return Permission{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Resources: []string{resources[of]},
		Cause: copied, Remedy: "or have the whole environment synced without patches that refer to them",
	}, true
}

// copiesSecrets is to read the Secrets of the source, unless the catalog's editor shares them. What is shared is what the
// catalog's own workloads refer to: the environment's patches could have any Secret copied.
func copiesSecrets(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	if catalog == nil {
		return nil
	}
	remedy := ""
	switch shared := catalog.Spec.Secrets == v1alpha1.CatalogSecretsShared; {
	case !shared:
		namespace, name := catalogOf(e)
		remedy = fmt.Sprintf("or ask the editors of AppCatalog %s/%s to share them with spec.secrets Shared", namespace, name)
	case mayRefer(e.Spec.Patches, wordsOfSecrets):
		remedy = "or leave what refers to Secrets or ServiceAccounts out of spec.patches"
	default:
		return nil
	}
	return []Permission{{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Resources: []string{"secrets"},
		Cause: copied, Remedy: remedy,
	}}
}

// copiesConfigMaps is to read the ConfigMaps of the source, if the environment's patches could have any of them copied.
func copiesConfigMaps(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	if catalog == nil || !mayRefer(e.Spec.Patches, wordsOfConfigMaps) {
		return nil
	}
	return []Permission{{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Resources: []string{"configmaps"},
		Cause: copied, Remedy: "or leave what refers to ConfigMaps out of spec.patches",
	}}
}

// copied is a cause.
const copied = "which the server would copy on their behalf"

// writes is to write what syncs may write in the target.
func writes(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	target := e.Spec.TargetNamespace
	remedy := "or leave the environment to somebody who may write in " + target
	if e.Spec.CreateNamespace {
		remedy = "or, while the namespace does not exist, for a ClusterRole that does, " + remedy
	}
	byGroup := map[string]sets.Set[string]{
		"":            sets.New("configmaps", "secrets", "services", "serviceaccounts"),
		"autoscaling": sets.New("horizontalpodautoscalers"),
		"policy":      sets.New("poddisruptionbudgets"),
	}
	if hosts := e.Spec.Adapt.IngressHosts.Type; hosts != "" && hosts != v1alpha1.IngressHostsOmit {
		byGroup["networking.k8s.io"] = sets.New("ingresses")
	}
	resources := v1alpha1.WorkloadResources()
	for kind := range kindsOf(e, catalog) {
		resource := resources[kind]
		if byGroup[resource.Group] == nil {
			byGroup[resource.Group] = sets.New[string]()
		}
		byGroup[resource.Group].Insert(resource.Resource)
	}
	var permissions []Permission
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		permissions = append(permissions, Permission{
			Verbs: writeVerbs, Namespace: target, Group: group, Resources: sets.List(byGroup[group]), Cause: onBehalf, Remedy: remedy,
		})
	}
	return permissions
}

// kindsOf are the kinds of workloads that syncs of an environment may write: those that it names, or that the catalog does or
// offers, and those that it holds and the catalog offers no more. A selector, and a revision of earlier times, can bring every
// kind.
func kindsOf(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) sets.Set[v1alpha1.WorkloadKind] {
	kinds := sets.New[v1alpha1.WorkloadKind]()
	for _, changed := range e.Status.ChangedWorkloads {
		kinds.Insert(changed.Kind)
	}
	if e.Spec.Type == v1alpha1.EnvironmentBranch {
		return kinds.Insert(kindsIn(e.Spec.BranchWorkloads)...)
	}
	if catalog == nil {
		return kinds
	}
	if catalog.Spec.WorkloadSelector != nil || e.Spec.PinnedRevision != nil {
		return sets.KeySet(v1alpha1.WorkloadResources())
	}
	for _, entry := range catalog.Status.Workloads {
		kinds.Insert(entry.Kind)
	}
	return kinds.Insert(kindsIn(catalog.Spec.Workloads)...)
}

func kindsIn(workloads []v1alpha1.WorkloadReference) []v1alpha1.WorkloadKind {
	kinds := make([]v1alpha1.WorkloadKind, len(workloads))
	for i, workload := range workloads {
		kinds[i] = workload.Kind
	}
	return kinds
}
