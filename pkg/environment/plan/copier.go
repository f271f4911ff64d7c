// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/ingresshost"
	"github.com/configbutler/slipstream/pkg/kube/annotation"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// copier makes of objects of the source what is wanted of them in the target.
type copier struct {
	target  objectcopy.Target
	patches patch.Patches
	labels  map[string]string
	// problems are sentences about hosts that cannot be made.
	problems sets.Set[string]
}

// wanted is what is wanted of an object.
type wanted struct {
	desired *unstructured.Unstructured
	// undeclared is desired without what the environment itself declares: its patches and its labels.
	undeclared *unstructured.Unstructured
}

func (s *Situation) newCopier(marks objectcopy.Marks) (*copier, error) {
	spec := &s.Environment.Spec
	patches, err := readPatches(spec.Patches)
	if err != nil {
		return nil, err
	}
	c := &copier{patches: patches, labels: s.labels(), problems: sets.New[string]()}
	c.target = objectcopy.Target{
		Namespace:       spec.TargetNamespace,
		Marks:           marks,
		Custom:          IsOnlyIncluded,
		Selected:        objectcopy.SelectorKeys(slices.Concat(s.Workloads, s.Source, s.Applied, s.lastApplied())...),
		OneReplica:      spec.Adapt.Replicas != v1alpha1.ReplicasAsSource,
		SuspendCronJobs: spec.Adapt.CronJobs != v1alpha1.CronJobsAsSource,
		NoLoadBalancers: spec.Adapt.LoadBalancers != v1alpha1.LoadBalancersAsSource,
	}
	if c.target.Host, err = c.hosts(s.Environment); err != nil {
		return nil, err
	}
	c.target.OmittedSecrets, err = c.leftBehind(s.Source)
	return c, err
}

func readPatches(from []v1alpha1.Patch) (patch.Patches, error) {
	read := make([]patch.Patch, len(from))
	for i, p := range from {
		read[i] = patch.Patch{Target: patch.Target(p.Target), Type: patch.Type(p.Type), Patch: p.Patch}
	}
	patches, errs := patch.Compile(read, field.NewPath("spec", "patches"))
	return patches, errs.ToAggregate()
}

// hosts returns what makes the hosts of Ingresses, Gateways and routes, nil if they stay as they are.
func (c *copier) hosts(e *v1alpha1.Environment) (func(of *unstructured.Unstructured, host string) string, error) {
	switch e.Spec.Adapt.IngressHosts.Type {
	case v1alpha1.IngressHostsAsSource:
		return nil, nil
	case v1alpha1.IngressHostsTemplate:
	default:
		return func(*unstructured.Unstructured, string) string { return "" }, nil
	}
	template, err := ingresshost.Parse(e.Spec.Adapt.IngressHosts.Template)
	if err != nil {
		return nil, fmt.Errorf("spec.adapt.ingressHosts.template %w", err)
	}
	place := ingresshost.Place{Environment: e.Name, Namespace: e.Spec.TargetNamespace}
	return func(of *unstructured.Unstructured, host string) string {
		if host == "" {
			return ""
		}
		made, err := template.Host(host, place)
		if err != nil {
			c.problems.Insert(fmt.Sprintf("%s is copied without the host %s: %v", KeyOf(of), host, err))
		}
		return made
	}, nil
}

// leftBehind returns the names of the Secrets that have no copies.
func (c *copier) leftBehind(source []*unstructured.Unstructured) (sets.Set[string], error) {
	names := sets.New[string]()
	for _, object := range source {
		if object.GetKind() != string(v1alpha1.DependencySecret) {
			continue
		}
		if _, omitted, err := c.target.Copy(object); err != nil {
			return nil, err
		} else if omitted != "" {
			names.Insert(object.GetName())
		}
	}
	return names, nil
}

// copy returns what is wanted of an object, nil if it has no copy, and why.
func (c *copier) copy(object *unstructured.Unstructured) (*wanted, string, error) {
	copied, omitted, err := c.target.Copy(object)
	if copied == nil || err != nil {
		return nil, omitted, err
	}
	patched, err := c.patches.Apply(copied)
	if err != nil {
		return nil, "", err
	}
	w := &wanted{desired: stored(patched), undeclared: stored(copied)}
	w.dropOldValues()
	c.labelled(w.desired)
	return w, "", nil
}

// dropOldValues removes annotations from a Secret to which patches give other values than the source has. Tools copy a Secret into its
// annotations, and who may read the target need not be who may read the source. What the patches set themselves stays.
func (w *wanted) dropOldValues() {
	if KeyOf(w.desired).GroupKind != secrets || reflect.DeepEqual(w.desired.Object["data"], w.undeclared.Object["data"]) {
		return
	}
	source, kept := w.undeclared.GetAnnotations(), w.desired.GetAnnotations()
	maps.DeleteFunc(kept, func(key, value string) bool {
		old, found := source[key]
		return found && value == old && !annotation.IsHarmless(key)
	})
	if len(kept) == 0 {
		kept = nil
	}
	w.desired.SetAnnotations(kept)
}

// labelled sets the environment's labels on an object.
func (c *copier) labelled(object *unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.labels)
	object.SetLabels(labels)
	return object
}
