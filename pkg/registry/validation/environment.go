// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncwindow"
	"github.com/configbutler/slipstream/pkg/environment/ingresshost"
)

const (
	maxSyncWindows = 50
	maxIncluded    = 100
)

// ValidateEnvironment validates a new Environment. It does not check what depends on other objects: whether the target
// is available and the catalog admits the environment.
func ValidateEnvironment(environment *configbutler.Environment) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&environment.ObjectMeta, true, environmentName, metadataPath)
	if environment.Spec.PinnedRevision != nil {
		errs = append(errs, field.Forbidden(specPath.Child("pinnedRevision"),
			"must be absent from a new environment, to which no revision has been applied yet"))
	}
	return append(errs, validateEnvironmentSpec(environment)...)
}

// ValidateEnvironmentUpdate validates an update. The catalog, the target and the type are immutable: applied revisions
// belong to one catalog, written objects to one namespace, and manual changes were kept or not depending on the type.
func ValidateEnvironmentUpdate(environment, old *configbutler.Environment) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&environment.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, validateEnvironmentIdentity(environment, old, specPath)...)
	errs = append(errs, validatePin(environment.Spec.PinnedRevision, old.Spec.PinnedRevision, old.Status.History,
		specPath.Child("pinnedRevision"))...)
	return append(errs, validateEnvironmentSpec(environment)...)
}

// environmentName requires a DNS label, because records carry the environment's name in a label and in their own name
// before a dot.
func environmentName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSLabel(name, prefix)
}

// validateEnvironmentIdentity rejects changes of the immutable fields.
func validateEnvironmentIdentity(environment, old *configbutler.Environment, path *field.Path) field.ErrorList {
	const another = "; make another environment"
	spec, before := &environment.Spec, &old.Spec
	var errs field.ErrorList
	if catalogOf(environment) != catalogOf(old) {
		errs = append(errs, field.Forbidden(path.Child("catalogRef"),
			fmt.Sprintf("must stay %s, because the revisions that were applied are its%s", catalogOf(old), another)))
	}
	if spec.TargetNamespace != before.TargetNamespace {
		errs = append(errs, field.Forbidden(path.Child("targetNamespace"),
			fmt.Sprintf("must stay %s, because what was written is there%s", before.TargetNamespace, another)))
	}
	if spec.Type != before.Type {
		errs = append(errs, field.Forbidden(path.Child("type"), fmt.Sprintf("must stay %s%s", before.Type, another)))
	}
	if was, is := baseOf(before), baseOf(spec); was != is {
		errs = append(errs, field.Forbidden(path.Child("baseEnvironmentRef"), fmt.Sprintf("must stay %s%s", was, another)))
	}
	return errs
}

// catalogOf returns the namespaced name of an environment's catalog.
func catalogOf(environment *configbutler.Environment) string {
	return v1alpha1.ObjectReference(environment.Spec.CatalogRef).NamespacedName(environment.Namespace).String()
}

func baseOf(spec *configbutler.EnvironmentSpec) string {
	if spec.BaseEnvironmentRef == nil {
		return "absent"
	}
	return spec.BaseEnvironmentRef.Name
}

func validateEnvironmentSpec(environment *configbutler.Environment) field.ErrorList {
	spec, path := &environment.Spec, specPath
	errs := validateObjectReference(spec.CatalogRef, path.Child("catalogRef"))
	errs = append(errs, validateTargetNamespace(spec.TargetNamespace, path.Child("targetNamespace"))...)
	errs = append(errs, validateEnvironmentType(environment, path)...)
	errs = append(errs, validatePatches(spec.Patches, path.Child("patches"))...)
	errs = append(errs, validateIncluded(spec.Include, path.Child("include"))...)
	errs = append(errs, validateAdaptation(&spec.Adapt, path.Child("adapt"))...)
	errs = append(errs, validateRange(spec.HistoryLimit, 1, maxHistoryLimit, path.Child("historyLimit"))...)
	errs = append(errs, validateSyncWindows(spec.SyncWindows, path.Child("syncWindows"))...)
	errs = append(errs, validateDuration(spec.TTL, time.Minute, year, path.Child("ttl"))...)
	errs = append(errs, validateOneOf(spec.DeletionPolicy, path.Child("deletionPolicy"),
		configbutler.DeletionPolicyDelete, configbutler.DeletionPolicyOrphan)...)
	if spec.ServiceAccountName != "" {
		errs = append(errs, validateReferenceName(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	}
	return errs
}

// validateTargetNamespace rejects the namespaces of Kubernetes itself.
func validateTargetNamespace(namespace string, path *field.Path) field.ErrorList {
	if namespace == "" {
		return field.ErrorList{field.Required(path, "name the namespace that is built")}
	}
	if strings.HasPrefix(namespace, "kube-") {
		return field.ErrorList{field.Invalid(path, namespace, "must not begin with kube-: such namespaces are those of Kubernetes itself")}
	}
	return invalidUnless(apivalidation.ValidateNamespaceName(namespace, false), namespace, path)
}

// validateEnvironmentType validates the fields that only one type has.
func validateEnvironmentType(environment *configbutler.Environment, path *field.Path) field.ErrorList {
	spec := &environment.Spec
	errs := validateOneOf(spec.Type, path.Child("type"), configbutler.EnvironmentShared, configbutler.EnvironmentBranch)
	workloads, base := path.Child("branchWorkloads"), path.Child("baseEnvironmentRef")
	if spec.Type != configbutler.EnvironmentBranch {
		const unless = "must be absent unless type is Branch"
		if len(spec.BranchWorkloads) > 0 {
			errs = append(errs, field.Forbidden(workloads, unless))
		}
		if spec.BaseEnvironmentRef != nil {
			errs = append(errs, field.Forbidden(base, unless))
		}
		return errs
	}
	if len(spec.BranchWorkloads) == 0 {
		errs = append(errs, field.Required(workloads, "type Branch needs the workloads that the environment holds"))
	}
	errs = append(errs, validateWorkloads(spec.CatalogRef.Name, spec.BranchWorkloads, workloads)...)
	if spec.BaseEnvironmentRef != nil {
		errs = append(errs, validateBase(spec.BaseEnvironmentRef.Name, environment.Name, base.Child("name"))...)
	}
	return errs
}

func validateBase(base, name string, path *field.Path) field.ErrorList {
	if base == name && name != "" {
		return field.ErrorList{field.Invalid(path, base, "must be another environment")}
	}
	if base == "" {
		return field.ErrorList{field.Required(path, "name the environment that the branch lives in")}
	}
	return invalidUnless(environmentName(base, false), base, path)
}

// validateIncluded checks that each object is of a kind that can be included, and is listed once regardless of its
// version.
func validateIncluded(objects []configbutler.IncludedObject, path *field.Path) field.ErrorList {
	if n := len(objects); n > maxIncluded {
		return field.ErrorList{field.TooMany(path, n, maxIncluded)}
	}
	var errs field.ErrorList
	names := make([]string, len(objects))
	for i, object := range objects {
		path := path.Index(i)
		group, _, _ := strings.Cut(object.APIVersion, "/")
		names[i] = group + " " + object.Kind + " " + object.Name
		errs = append(errs, validateIncludedKind(object, path)...)
		errs = append(errs, validateReferenceName(object.Name, path.Child("name"))...)
	}
	return append(errs, validateUnique(names, path)...)
}

// validateIncludedKind rejects what catalogs offer, what is copied with workloads, and what grants permissions.
func validateIncludedKind(object configbutler.IncludedObject, path *field.Path) field.ErrorList {
	version, kind := path.Child("apiVersion"), path.Child("kind")
	if object.APIVersion == "v1" {
		return validateOneOf(object.Kind, kind, string(configbutler.DependencyConfigMap), string(configbutler.DependencySecret))
	}
	var errs field.ErrorList
	gv, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil || !v1alpha1.IsCustomGroup(gv.Group) || len(utilvalidation.IsDNS1123Subdomain(gv.Group)) > 0 ||
		len(utilvalidation.IsDNS1035Label(gv.Version)) > 0 {
		errs = append(errs, field.Invalid(version, object.APIVersion,
			"must be v1, for a ConfigMap or a Secret, or that of a custom resource, such as example.com/v1, "+
				"in no API group of Kubernetes, OpenShift (openshift.io), Rancher (cattle.io) or this server"))
	}
	if !kindName.MatchString(object.Kind) {
		errs = append(errs, field.Invalid(kind, object.Kind, "must be a kind such as Certificate"))
	}
	return errs
}

func validateAdaptation(adapt *configbutler.Adaptation, path *field.Path) field.ErrorList {
	errs := validateOneOf(adapt.Replicas, path.Child("replicas"), configbutler.ReplicasOne, configbutler.ReplicasAsSource)
	errs = append(errs, validateOneOf(adapt.CronJobs, path.Child("cronJobs"),
		configbutler.CronJobsSuspend, configbutler.CronJobsAsSource)...)
	errs = append(errs, validateOneOf(adapt.LoadBalancers, path.Child("loadBalancers"),
		configbutler.LoadBalancersClusterIP, configbutler.LoadBalancersAsSource)...)
	return append(errs, validateIngressHosts(adapt.IngressHosts, path.Child("ingressHosts"))...)
}

func validateIngressHosts(hosts configbutler.IngressHosts, path *field.Path) field.ErrorList {
	errs := validateOneOf(hosts.Type, path.Child("type"),
		configbutler.IngressHostsTemplate, configbutler.IngressHostsOmit, configbutler.IngressHostsAsSource)
	path = path.Child("template")
	switch byTemplate := hosts.Type == configbutler.IngressHostsTemplate; {
	case byTemplate && hosts.Template == "":
		errs = append(errs, field.Required(path, "type Template needs it, such as {label}.{environment}.dev.example.com"))
	case byTemplate:
		if _, err := ingresshost.Parse(hosts.Template); err != nil {
			errs = append(errs, field.Invalid(path, hosts.Template, err.Error()))
		}
	case hosts.Template != "":
		errs = append(errs, field.Forbidden(path, "must be absent unless type is Template"))
	}
	return errs
}

// validateSyncWindows parses windows as syncs do.
func validateSyncWindows(windows []configbutler.SyncWindow, path *field.Path) field.ErrorList {
	if len(windows) > maxSyncWindows {
		return field.ErrorList{field.TooMany(path, len(windows), maxSyncWindows)}
	}
	var errs field.ErrorList
	read := make([]syncwindow.Window, len(windows))
	seen := make(map[string]bool, len(windows))
	for i, window := range windows {
		read[i] = syncwindow.Window{
			Name: window.Name, Kind: syncwindow.Kind(window.Kind), Schedule: window.Schedule,
			Duration: window.Duration.Duration, TimeZone: window.TimeZone,
		}
		name := path.Index(i).Child("name")
		errs = append(errs, invalidUnless(utilvalidation.IsDNS1123Label(window.Name), window.Name, name)...)
		if seen[window.Name] {
			errs = append(errs, field.Duplicate(name, window.Name))
		}
		seen[window.Name] = true
	}
	_, problems := syncwindow.Compile(read, path)
	return append(errs, problems...)
}
