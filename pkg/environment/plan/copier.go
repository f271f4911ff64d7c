// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
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

// copier turns objects of the source into desired objects of the target.
type copier struct {
	target  objectcopy.Target
	patches patch.Patches
	labels  map[string]string
	// warnings are those of the copies that were used.
	warnings sets.Set[string]
	*CopyCache
}

// desiredObject is an object that the target must have.
type desiredObject struct {
	object *unstructured.Unstructured
	// unpatched is object without the environment's patches and labels.
	unpatched *unstructured.Unstructured
	// reason explains why the target must have it.
	reason string
}

func (s *Input) newCopier(marks objectcopy.Marks) (*copier, error) {
	spec := &s.Environment.Spec
	patches, err := readPatches(spec.Patches)
	if err != nil {
		return nil, err
	}
	c := &copier{patches: patches, labels: s.labels(), warnings: sets.New[string](), CopyCache: cmp.Or(s.CopyCache, &CopyCache{})}
	c.target = objectcopy.Target{
		Namespace:       spec.TargetNamespace,
		Marks:           marks,
		Custom:          IsOnlyIncluded,
		Selected:        objectcopy.SelectorKeys(slices.Concat(s.Workloads, s.Source, s.Snapshot, s.lastAppliedServices())...),
		OneReplica:      spec.Adapt.Replicas != v1alpha1.ReplicasAsSource,
		SuspendCronJobs: spec.Adapt.CronJobs != v1alpha1.CronJobsAsSource,
		NoLoadBalancers: spec.Adapt.LoadBalancers != v1alpha1.LoadBalancersAsSource,
	}
	if c.target.Host, err = c.hosts(s.Environment); err != nil {
		return nil, err
	}
	if c.target.OmittedSecrets, err = c.secretsWithoutCopy(s.Source); err != nil {
		return nil, err
	}
	c.use(c.target)
	return c, nil
}

func readPatches(from []v1alpha1.Patch) (patch.Patches, error) {
	read := make([]patch.Patch, len(from))
	for i, p := range from {
		read[i] = patch.Patch{Target: patch.Target(p.Target), Type: patch.Type(p.Type), Patch: p.Patch}
	}
	patches, errs := patch.Compile(read, field.NewPath("spec", "patches"))
	return patches, errs.ToAggregate()
}

// hosts returns the function that maps hosts of Ingresses, Gateways and routes, nil if they are not changed.
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
			c.warnings.Insert(fmt.Sprintf("%s is copied without the host %s: %v", KeyOf(of), host, err))
		}
		return made
	}, nil
}

// secretsWithoutCopy returns the names of the Secrets that are never copied.
func (c *copier) secretsWithoutCopy(source []*unstructured.Unstructured) (sets.Set[string], error) {
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

// copy returns the desired object. If the object has no copy, the first result is nil and the second is the reason.
func (c *copier) copy(object *unstructured.Unstructured) (*desiredObject, string, error) {
	made, known := c.made[object]
	if !known {
		var err error
		if made, err = c.newCopy(object); err != nil {
			return nil, "", err
		}
		c.made[object] = made
	}
	c.warnings.Insert(made.warnings...)
	if made.omitted != "" {
		return nil, made.omitted, nil
	}
	return &desiredObject{object: made.object, unpatched: made.unpatched}, "", nil
}

func (c *copier) newCopy(object *unstructured.Unstructured) (madeCopy, error) {
	before := c.warnings
	c.warnings = sets.New[string]()
	copied, omitted, err := c.target.Copy(object)
	warnings := sets.List(c.warnings)
	c.warnings = before
	if copied == nil || err != nil {
		return madeCopy{omitted: omitted, warnings: warnings}, err
	}
	patched, err := c.patches.Apply(copied)
	if err != nil {
		return madeCopy{}, err
	}
	w := madeCopy{unpatched: normalized(copied), warnings: warnings}
	if patched == copied { // No patch selects it.
		w.object = w.unpatched.DeepCopy()
	} else {
		w.object = normalized(patched)
	}
	w.dropAnnotationsOfSource()
	c.setLabels(w.object)
	return w, nil
}

// dropAnnotationsOfSource removes the source's annotations from a Secret whose data patches change. Some tools store a copy
// of a Secret in its annotations, and readers of the target may lack the permission to read the source. Annotations set by
// patches stay.
func (w madeCopy) dropAnnotationsOfSource() {
	if KeyOf(w.object).GroupKind != secrets || reflect.DeepEqual(w.object.Object["data"], w.unpatched.Object["data"]) {
		return
	}
	source, kept := w.unpatched.GetAnnotations(), w.object.GetAnnotations()
	maps.DeleteFunc(kept, func(key, value string) bool {
		old, found := source[key]
		return found && value == old && !annotation.IsHarmless(key)
	})
	if len(kept) == 0 {
		kept = nil
	}
	w.object.SetAnnotations(kept)
}

// setLabels sets the environment's labels on an object.
func (c *copier) setLabels(object *unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.labels)
	object.SetLabels(labels)
	return object
}
