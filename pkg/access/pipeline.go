// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// listVerbs are what telling of objects takes. A watch tells nothing that a list does not.
var listVerbs = []string{"list"}

// definitions is the type of CustomResourceDefinitions.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// OfPipeline is to list what a pipeline tells of, in the whole cluster, to read the Secrets that its sinks send to their servers, and
// to create the Jobs that its sinks start, with the accounts that they run as. The warnings say what in the pipeline selects nothing
// yet.
func OfPipeline(resolver Resolver, pipeline *v1alpha1.SyncPipeline) (permissions []Permission, warnings []string) {
	spec := &pipeline.Spec
	r := reading{resolver: resolver, verbs: listVerbs}
	if isOn(spec.CustomResourceDefinitions.Enabled) {
		r.need(definitions, "or let spec.customResourceDefinitions.enabled be false")
	}
	if isOn(spec.Instances.Enabled) {
		r.addInstances(&spec.Instances, field.NewPath("spec", "instances", "resources"))
	}
	permissions = r.permissions
	for i := range spec.Sinks {
		permissions = append(permissions, ofSink(&spec.Sinks[i], field.NewPath("spec", "sinks").Index(i))...)
	}
	return permissions, r.warnings
}

// isOn says whether a source of a pipeline is.
func isOn(enabled *bool) bool { return ptr.Deref(enabled, true) }

// addInstances wants the types that a pipeline names, as those of a rule: a wildcard needs the right on the wildcard, whatever is left
// out of it, since types may appear later.
func (r *reading) addInstances(source *v1alpha1.InstanceSource, path *field.Path) {
	if isEverything(source.Resources) {
		r.addNames(nil, all, fmt.Sprintf("or name the types that you may list in %s", path))
		return
	}
	for _, entry := range source.Resources {
		if !isLeftOut(entry, source.Exclude) {
			r.addEntry(entry, Selection{Resources: []string{entry}}, path)
		}
	}
}

// isLeftOut says whether all that an entry names is left out. A plural alone stands for that plural in every group.
func isLeftOut(entry string, excluded []string) bool {
	plural, _, _ := strings.Cut(entry, ".")
	return slices.Contains(excluded, entry) || slices.Contains(excluded, plural)
}

// isEverything says whether a list of what is chosen chooses everything.
func isEverything(chosen []string) bool { return len(chosen) == 0 || slices.Contains(chosen, all) }

// ofSink is what one sink of a pipeline uses.
func ofSink(sink *v1alpha1.PipelineSink, path *field.Path) []Permission {
	var permissions []Permission
	if http := sink.HTTP; http != nil && http.SecretRef != nil {
		permissions = append(permissions, Permission{
			Verbs: []string{"get"}, Namespace: http.SecretRef.Namespace, Resources: []string{"secrets"}, Name: http.SecretRef.Name,
			Cause: onBehalf, Remedy: fmt.Sprintf("or let %s name a Secret that you may read", path.Child("http", "secretRef")),
		})
	}
	if job := sink.Job; job != nil {
		permissions = append(permissions, startsJobs(job, path.Child("job"))...)
	}
	return permissions
}

// startsJobs is to create Jobs, each with the ConfigMap that it mounts, and to act as the account that they run as.
func startsJobs(job *v1alpha1.JobSink, path *field.Path) []Permission {
	creates := func(group, resource string) Permission {
		return Permission{
			Verbs: []string{"create"}, Namespace: job.Namespace, Group: group, Resources: []string{resource},
			Cause: onBehalf, Remedy: fmt.Sprintf("or let %s be one in which you may", path.Child("namespace")),
		}
	}
	return []Permission{creates("batch", "jobs"), creates("", "configmaps"), {
		Verbs: []string{"impersonate"}, Namespace: job.Namespace, Resources: []string{"serviceaccounts"},
		Name:  cmp.Or(job.ServiceAccountName, "default"),
		Cause: "as which the Jobs would run", Remedy: fmt.Sprintf("or let %s name one as which you may act", path.Child("serviceAccountName")),
	}}
}

// PipelineSendsNoMore says whether a pipeline sends nothing that it did not send before, to nobody else. Everything counts but what
// is left out here: when and how often something is sent, unless that is how many Jobs are made; that nothing is; and sinks, types
// and definitions that are taken out.
func PipelineSendsNoMore(spec, before *v1alpha1.SyncPipelineSpec) bool {
	was := before.DeepCopy()
	if !slices.ContainsFunc(spec.Sinks, func(sink v1alpha1.PipelineSink) bool { return sink.Job != nil }) {
		was.Mode, was.PollInterval, was.Debounce = spec.Mode, spec.PollInterval, spec.Debounce
		was.Batch, was.ResyncInterval = spec.Batch, spec.ResyncInterval
	}
	if spec.Suspend {
		was.Suspend = true
	}
	was.Sinks = remaining(spec.Sinks, was.Sinks)
	if of, wasOf := &spec.CustomResourceDefinitions, &was.CustomResourceDefinitions; choosesNoMore(
		choice{of.Enabled, of.Include, of.Exclude}, choice{wasOf.Enabled, wasOf.Include, wasOf.Exclude}) {
		was.CustomResourceDefinitions = *of
	}
	if of, wasOf := &spec.Instances, &was.Instances; choosesNoMore(
		choice{of.Enabled, of.Resources, of.Exclude}, choice{wasOf.Enabled, wasOf.Resources, wasOf.Exclude}) {
		was.Instances = *of
	}
	return equality.Semantic.DeepEqual(spec, was)
}

// remaining are those of the sinks that were there before which are there still, in the order of now. When they are tried again, and
// for how long they are waited for, is as it is now.
func remaining(sinks, before []v1alpha1.PipelineSink) []v1alpha1.PipelineSink {
	var left []v1alpha1.PipelineSink
	for i := range sinks {
		sink := &sinks[i]
		at := slices.IndexFunc(before, func(was v1alpha1.PipelineSink) bool { return was.Name == sink.Name })
		if at < 0 {
			continue
		}
		was := before[at]
		was.Retry = sink.Retry
		if was.HTTP != nil && sink.HTTP != nil {
			was.HTTP.Timeout = sink.HTTP.Timeout
		}
		left = append(left, was)
	}
	return left
}

// choice is what a source of a pipeline tells of: what is chosen and not left out.
type choice struct {
	enabled          *bool
	chosen, excluded []string
}

// choosesNoMore says whether everything that is chosen was before. What a glob stands for is not looked at: another one counts.
func choosesNoMore(now, before choice) bool {
	if !isOn(now.enabled) {
		return true
	}
	within := isEverything(before.chosen) || !isEverything(now.chosen) && sets.New(before.chosen...).HasAll(now.chosen...)
	return isOn(before.enabled) && within && sets.New(now.excluded...).HasAll(before.excluded...)
}
