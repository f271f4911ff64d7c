// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	minPollInterval   = 10 * time.Second
	maxDebounce       = 10 * time.Minute
	maxBatchWait      = 5 * time.Minute
	maxBatchItems     = 1000
	maxResyncInterval = 30 * day
)

// ValidateSyncPipeline validates a new SyncPipeline. Labels of Jobs carry its name.
func ValidateSyncPipeline(pipeline *configbutler.SyncPipeline) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&pipeline.ObjectMeta, false, apivalidation.NameIsDNSLabel, metadataPath)
	return append(errs, validateSyncPipelineSpec(&pipeline.Spec, specPath)...)
}

// ValidateSyncPipelineUpdate validates a changed SyncPipeline. Every field of the spec may change.
func ValidateSyncPipelineUpdate(pipeline, old *configbutler.SyncPipeline) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pipeline.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateSyncPipelineSpec(&pipeline.Spec, specPath)...)
}

func validateSyncPipelineSpec(spec *configbutler.SyncPipelineSpec, path *field.Path) field.ErrorList {
	errs := validateSources(spec, path)
	errs = append(errs, validateOneOf(spec.Mode, path.Child("mode"), configbutler.PipelineModeWatch, configbutler.PipelineModePoll)...)
	errs = append(errs, validateDuration(spec.PollInterval, minPollInterval, day, path.Child("pollInterval"))...)
	errs = append(errs, validateDuration(spec.Debounce, 0, maxDebounce, path.Child("debounce"))...)
	errs = append(errs, validateRange(spec.Batch.MaxItems, 1, maxBatchItems, path.Child("batch", "maxItems"))...)
	errs = append(errs, validateDuration(spec.Batch.MaxWait, 0, maxBatchWait, path.Child("batch", "maxWait"))...)
	errs = append(errs, validateResyncInterval(spec.ResyncInterval, path.Child("resyncInterval"))...)
	errs = append(errs, validatePipelineSinks(spec.Sinks, path.Child("sinks"))...)
	return append(errs, validateEvents(spec, path.Child("instances", "exclude"))...)
}

// validateEvents rejects Events as a source of Job sinks: the cluster creates Events for each Job, which would cause
// another Job.
func validateEvents(spec *configbutler.SyncPipelineSpec, path *field.Path) field.ErrorList {
	hasJob := slices.ContainsFunc(spec.Sinks, func(sink configbutler.PipelineSink) bool { return sink.Job != nil })
	if !hasJob || isFalse(spec.Instances.Enabled) || !choosesEvents(&spec.Instances) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, spec.Instances.Exclude,
		"must have events while a sink has job: the cluster makes Events for each Job, and another Job would be told of these, without end")}
}

// choosesEvents reports whether a source selects Events. Both groups that serve them have the same objects.
func choosesEvents(source *configbutler.InstanceSource) bool {
	const plural, full = "events", "events.events.k8s.io"
	switch named := source.Resources; {
	case slices.Contains(source.Exclude, plural):
		return false
	case len(named) == 0, slices.Contains(named, all), slices.Contains(named, plural):
		return true
	default:
		return slices.Contains(named, full) && !slices.Contains(source.Exclude, full)
	}
}

// validateSources validates what a pipeline sends.
func validateSources(spec *configbutler.SyncPipelineSpec, path *field.Path) field.ErrorList {
	definitions, instances := &spec.CustomResourceDefinitions, &spec.Instances
	var errs field.ErrorList
	if isFalse(definitions.Enabled) && isFalse(instances.Enabled) {
		errs = append(errs, field.Invalid(path.Child("instances", "enabled"), false,
			"must be true while customResourceDefinitions.enabled is false, or there is nothing to tell of; suspend stops a pipeline"))
	}
	definitionsPath, instancesPath := path.Child("customResourceDefinitions"), path.Child("instances")
	errs = append(errs, validateSourceNames(definitions.Include, refusedDefinitions, definitionsPath.Child("include"))...)
	errs = append(errs, validateSourceNames(definitions.Exclude, refusedDefinitions, definitionsPath.Child("exclude"))...)
	errs = append(errs, validateSourceNames(instances.Resources, refusedTypes, instancesPath.Child("resources"))...)
	return append(errs, validateSourceNames(instances.Exclude, refusedType, instancesPath.Child("exclude"))...)
}

func isFalse(value *bool) bool { return value != nil && !*value }

// validateSourceNames validates a set of names. refused returns why a name is invalid.
func validateSourceNames(names []string, refused func(string) string, path *field.Path) field.ErrorList {
	return validateBoundedSet(names, v1alpha1.MaxSourceNames, refused, path)
}

// validateBoundedSet validates a set of at most a number of names. refused returns why a name is invalid.
func validateBoundedSet(names []string, most int, refused func(string) string, path *field.Path) field.ErrorList {
	if n := len(names); n > most {
		return field.ErrorList{field.TooMany(path, n, most)}
	}
	errs := validateSet(names, path)
	for i, name := range names {
		if detail := refused(name); detail != "" {
			errs = append(errs, field.Invalid(path.Index(i), name, detail))
		}
	}
	return errs
}

// refusedDefinitions returns why an entry is neither the name of a CustomResourceDefinition nor a glob, or an empty
// string.
func refusedDefinitions(glob string) string {
	name := strings.ReplaceAll(glob, all, "a")
	if len(utilvalidation.IsDNS1123Subdomain(name)) == 0 && (name != glob || strings.Contains(name, ".")) {
		return ""
	}
	return "must be the name of a CustomResourceDefinition such as certificates.cert-manager.io, in which * stands for any characters"
}

// refusedTypes returns why an entry is neither a type nor *, or an empty string.
func refusedTypes(entry string) string {
	if entry == all || refusedType(entry) == "" {
		return ""
	}
	return typesAllowed + ", or * for every type"
}

const typesAllowed = "must be a plural in lower case such as services, or plural.group such as deployments.apps"

func refusedType(entry string) string {
	plural, group, hasGroup := strings.Cut(entry, ".")
	if len(utilvalidation.IsDNS1123Label(plural)) == 0 && (!hasGroup || len(utilvalidation.IsDNS1123Subdomain(group)) == 0) {
		return ""
	}
	return typesAllowed
}

func validateResyncInterval(interval *metav1.Duration, path *field.Path) field.ErrorList {
	if interval == nil || interval.Duration == 0 || len(validateDuration(interval, time.Minute, maxResyncInterval, path)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, interval.Duration.String(), "must be 0s for never, or at least 1m and at most 720h")}
}

// ValidatePipelineSync validates a request to the named pipeline.
func ValidatePipelineSync(request *configbutler.PipelineSync, name string) field.ErrorList {
	return append(validateNameInPath(request.Name, name), validatePipelineScope(request.Spec.Scope, specPath.Child("scope"))...)
}

// ValidatePipelineSyncSource checks that the pipeline has sources in the scope of a request.
func ValidatePipelineSyncSource(request *configbutler.PipelineSync, spec *configbutler.SyncPipelineSpec) field.ErrorList {
	path := specPath.Child("scope")
	switch scope := request.Spec.Scope; {
	case scope == configbutler.PipelineScopeDefinitions && isFalse(spec.CustomResourceDefinitions.Enabled):
		return field.ErrorList{field.Invalid(path, scope, "must be Instances or All: the pipeline's customResourceDefinitions.enabled is false")}
	case scope == configbutler.PipelineScopeInstances && isFalse(spec.Instances.Enabled):
		return field.ErrorList{field.Invalid(path, scope, "must be CustomResourceDefinitions or All: the pipeline's instances.enabled is false")}
	}
	return nil
}

func validatePipelineScope(scope configbutler.PipelineScope, path *field.Path) field.ErrorList {
	return validateOneOf(scope, path,
		configbutler.PipelineScopeAll, configbutler.PipelineScopeDefinitions, configbutler.PipelineScopeInstances)
}

// validateNamesOfSinks rejects missing and duplicate keys in a list of sinks.
func validateNamesOfSinks(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		namePath := path.Index(i).Child("name")
		switch problems := apivalidation.NameIsDNSLabel(name, false); {
		case name == "":
			errs = append(errs, field.Required(namePath, "every sink needs a name of its own, such as assistant"))
		case len(problems) > 0:
			errs = append(errs, field.Invalid(namePath, name, problems[0]))
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(namePath, name))
		}
	}
	return errs
}
