// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// writeVerbs are the verbs with which a sync writes objects.
var writeVerbs = []string{"create", "patch", "delete"}

// OfEnvironment returns the permissions to use the catalog of an environment, to write what a sync may write in its target, and to read the
// Secrets that it copies and the ConfigMaps that its patches may name. If the catalog does not exist, it is nil, and what it offers is
// unknown: the permissions are checked again for the requester of a sync. A target that does not exist needs the permissions of OfTarget,
// too.
//
// Other objects that the catalog's workloads refer to need no permission of the requester. The catalog's editor, who must be allowed to
// read them, consents to their copies.
func OfEnvironment(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	permissions := []Permission{OfCatalogUse(e)}
	permissions = append(permissions, copiesSecrets(e, catalog)...)
	permissions = append(permissions, copiesConfigMaps(e, catalog)...)
	for _, object := range e.Spec.Include {
		if read, ok := OfIncluded(object, catalog); ok {
			permissions = append(permissions, read)
		}
	}
	return append(permissions, writes(e, catalog)...)
}

// OfTarget returns the permission to create the target namespace of an environment; none if the environment does not create it. It is
// needed while the namespace does not exist.
func OfTarget(e *v1alpha1.Environment) []Permission {
	if !e.Spec.CreateNamespace {
		return nil
	}
	return []Permission{{
		Verbs: []string{"create"}, Resources: []string{"namespaces"},
		Cause: onBehalf, Remedy: fmt.Sprintf("or have the namespace %s made by a user who may", e.Spec.TargetNamespace),
	}}
}

// OfAccount returns the permission to impersonate the ServiceAccount that an environment names for automatic syncs; none if it names none.
// The user who names the account gives it whatever permissions later syncs need.
func OfAccount(e *v1alpha1.Environment) []Permission {
	if e.Spec.ServiceAccountName == "" {
		return nil
	}
	return []Permission{{
		Verbs: []string{"impersonate"}, Namespace: e.Namespace, Resources: []string{"serviceaccounts"}, Name: e.Spec.ServiceAccountName,
		Cause: "whose permissions automatic syncs would have", Remedy: "or leave out spec.serviceAccountName",
	}}
}

// OfCatalogUse returns the permission to read the catalog of an environment, whose content a sync writes.
func OfCatalogUse(e *v1alpha1.Environment) Permission {
	catalog := e.Spec.CatalogRef.NamespacedName(e.Namespace)
	return Permission{
		Verbs: []string{"get"}, Group: v1alpha1.GroupName, Resources: []string{"appcatalogs"},
		Namespace: catalog.Namespace, Name: catalog.Name,
		Cause: onBehalf, Remedy: "or let spec.catalogRef name a catalog that you may read",
	}
}

// OfCopying returns, by type, the permissions that the requester of a sync needs to have objects copied.
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

// OfIncluded returns the permission to read a custom resource that spec.include names. It returns false for ConfigMaps and Secrets, which
// OfCopying covers, and if there is no catalog, because the namespace of the object is unknown then.
func OfIncluded(object v1alpha1.IncludedObject, catalog *v1alpha1.AppCatalog) (Permission, bool) {
	resource := object.Resource()
	if catalog == nil || resource.Group == "" {
		return Permission{}, false
	}
	return Permission{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Group: resource.Group, Resources: []string{resource.Resource},
		Name: object.Name, Cause: copied, Remedy: fmt.Sprintf("or leave %s %s out of spec.include", object.Kind, object.Name),
	}, true
}

// isIncluded reports whether spec.include names objects of a type, ConfigMaps or Secrets.
func isIncluded(e *v1alpha1.Environment, of v1alpha1.DependencyType) bool {
	return slices.ContainsFunc(e.Spec.Include, func(o v1alpha1.IncludedObject) bool {
		return o.Resource().Group == "" && o.Kind == string(of)
	})
}

// OfPatched returns the permission that the requester of a refresh needs to have objects of a type copied to which only patches of the
// environment refer, or referred when it was last synced. It returns false for types that need no permission.
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

// copiesSecrets returns the permission to read the Secrets of the source; none if the catalog shares them. A catalog shares only the
// Secrets to which its own workloads refer. Patches of the environment, or spec.include, could have any Secret copied.
func copiesSecrets(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	if catalog == nil {
		return nil
	}
	remedy := ""
	switch shared := catalog.Spec.Secrets == v1alpha1.CatalogSecretsShared; {
	case !shared:
		remedy = fmt.Sprintf("or ask the editors of AppCatalog %s to share them with spec.secrets Shared",
			e.Spec.CatalogRef.NamespacedName(e.Namespace))
	case mayRefer(e.Spec.Patches, wordsOfSecrets):
		remedy = "or leave what refers to Secrets or ServiceAccounts out of spec.patches"
	case isIncluded(e, v1alpha1.DependencySecret):
		remedy = "or leave Secrets out of spec.include"
	default:
		return nil
	}
	return []Permission{{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Resources: []string{"secrets"},
		Cause: copied, Remedy: remedy,
	}}
}

// copiesConfigMaps returns the permission to read the ConfigMaps of the source, if patches of the environment could have any of them
// copied, or spec.include names some.
func copiesConfigMaps(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	remedy := ""
	switch {
	case catalog == nil:
		return nil
	case mayRefer(e.Spec.Patches, wordsOfConfigMaps):
		remedy = "or leave what refers to ConfigMaps out of spec.patches"
	case isIncluded(e, v1alpha1.DependencyConfigMap):
		remedy = "or leave ConfigMaps out of spec.include"
	default:
		return nil
	}
	return []Permission{{
		Verbs: []string{"get"}, Namespace: catalog.Spec.SourceNamespace, Resources: []string{"configmaps"}, Cause: copied, Remedy: remedy,
	}}
}

// copied is the Cause of permissions to read what a sync copies.
const copied = "which the server would copy on their behalf"

// gatewayResources are the resources of the copied kinds of the Gateway API. A user who patches one has it written. For the others, a sync
// checks the permission when it writes one.
var gatewayResources = map[string]string{
	"Gateway": "gateways", "GRPCRoute": "grpcroutes", "HTTPRoute": "httproutes", "ReferenceGrant": "referencegrants",
}

// networking is the API group of Ingresses and NetworkPolicies.
const networking = "networking.k8s.io"

// OfWriting returns the permission to use verbs on the objects of a resource in the target of an environment.
func OfWriting(e *v1alpha1.Environment, resource schema.GroupResource, verbs ...string) Permission {
	return Permission{
		Verbs: verbs, Namespace: e.Spec.TargetNamespace, Group: resource.Group, Resources: []string{resource.Resource},
		Cause: onBehalf, Remedy: leftToOthers(e),
	}
}

// leftToOthers returns the remedy for a user who may not write in the target.
func leftToOthers(e *v1alpha1.Environment) string {
	remedy := "or leave the environment to a user who may write in " + e.Spec.TargetNamespace
	if e.Spec.CreateNamespace {
		remedy = "or, while the namespace does not exist, for a ClusterRole that does, " + remedy
	}
	return remedy
}

// writes returns the permissions to write what syncs may write in the target.
func writes(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	byGroup := map[string]sets.Set[string]{
		"":            sets.New("configmaps", "secrets", "services", "serviceaccounts"),
		"autoscaling": sets.New("horizontalpodautoscalers"),
		"policy":      sets.New("poddisruptionbudgets"),
		networking:    sets.New("networkpolicies"),
	}
	if e.Spec.Adapt.IngressHosts.Copied() {
		byGroup[networking].Insert("ingresses")
	}
	insert := func(group, resource string) {
		if byGroup[group] == nil {
			byGroup[group] = sets.New[string]()
		}
		byGroup[group].Insert(resource)
	}
	resources := v1alpha1.WorkloadResources()
	for kind := range kindsOf(e, catalog) {
		insert(resources[kind].Group, resources[kind].Resource)
	}
	for _, object := range e.Spec.Include {
		insert(object.Resource().Group, object.Resource().Resource)
	}
	for _, patch := range e.Spec.Patches {
		if resource, ok := gatewayResources[patch.Target.Kind]; ok && e.Spec.Adapt.IngressHosts.Copied() {
			insert(gatewayv1.GroupName, resource)
		}
	}
	var permissions []Permission
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		permissions = append(permissions, Permission{
			Verbs: writeVerbs, Namespace: e.Spec.TargetNamespace, Group: group, Resources: sets.List(byGroup[group]),
			Cause: onBehalf, Remedy: leftToOthers(e),
		})
	}
	return permissions
}

// kindsOf returns the kinds of workloads that syncs of an environment may write: those that it names, those that the catalog names or
// offers, and those that it has although the catalog does not offer them any more. With a selector or a pinned revision, every kind is
// possible.
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
