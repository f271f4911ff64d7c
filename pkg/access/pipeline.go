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

// listVerbs are the verbs for sending objects. A watch shows nothing that a list does not.
var listVerbs = []string{"list"}

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// OfPipeline returns the permissions to list what a pipeline sends, in the whole cluster, to read the Secrets that its sinks send to their
// servers and proxies, and to create the Jobs of its sinks and impersonate their accounts. The warnings name what in the pipeline selects nothing yet.
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

// isOn reports whether a source of a pipeline is enabled.
func isOn(enabled *bool) bool { return ptr.Deref(enabled, true) }

// addInstances adds the resources that a pipeline names, like those of a rule. A wildcard needs the permission for the wildcard even if
// resources are excluded, because others may appear later.
func (r *reading) addInstances(source *v1alpha1.InstanceSource, path *field.Path) {
	if len(source.Resources) > v1alpha1.MaxSourceNames || len(source.Exclude) > v1alpha1.MaxSourceNames {
		r.permissions = append(r.permissions, r.everything(path)) // Validation rejects it.
		return
	}
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

// isLeftOut reports whether everything that an entry names is excluded. A plural without a group matches every group.
func isLeftOut(entry string, excluded []string) bool {
	plural, _, _ := strings.Cut(entry, ".")
	return slices.Contains(excluded, entry) || slices.Contains(excluded, plural)
}

// isEverything reports whether a list selects everything.
func isEverything(chosen []string) bool { return len(chosen) == 0 || slices.Contains(chosen, all) }

// ofSink returns the permissions for what a sink uses.
func ofSink(sink *v1alpha1.PipelineSink, path *field.Path) []Permission {
	var permissions []Permission
	if http := sink.HTTP; http != nil {
		add := func(ref *v1alpha1.NamespacedObjectReference, name string) {
			if ref == nil {
				return
			}
			permissions = append(permissions, Permission{
				Verbs: []string{"get"}, Namespace: ref.Namespace, Resources: []string{"secrets"}, Name: ref.Name,
				Cause: onBehalf, Remedy: fmt.Sprintf("or let %s name a Secret that you may read", path.Child("http", name)),
			})
		}
		add(http.SecretRef, "secretRef")
		add(http.ProxySecretRef, "proxySecretRef")
	}
	if job := sink.Job; job != nil {
		permissions = append(permissions, startsJobs(job, path.Child("job"))...)
	}
	return permissions
}

// startsJobs returns the permissions to create Jobs and the ConfigMap that each mounts, and to impersonate their account.
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

// PipelineSendsNoMore reports whether a change of a pipeline sends nothing new, and sends nothing to more receivers. Every change of the
// spec counts except these: when and how often something is sent, unless it determines the number of Jobs; suspend being set; and sinks,
// types and definitions being removed.
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

// remaining returns the earlier versions of the sinks that still exist, in the new order. Their retries and timeouts are the new ones,
// because changes of these do not count.
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

// choice is what a source of a pipeline selects: what is chosen and not excluded.
type choice struct {
	enabled          *bool
	chosen, excluded []string
}

// choosesNoMore reports whether everything that is selected now was selected before. It does not expand globs: a new glob counts as more.
func choosesNoMore(now, before choice) bool {
	if !isOn(now.enabled) {
		return true
	}
	within := isEverything(before.chosen) || !isEverything(now.chosen) && sets.New(before.chosen...).HasAll(now.chosen...)
	return isOn(before.enabled) && within && sets.New(now.excluded...).HasAll(before.excluded...)
}
