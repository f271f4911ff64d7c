// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

var (
	services = schema.GroupKind{Kind: "Service"}
	secrets  = schema.GroupKind{Kind: "Secret"}
)

// listed are the kinds of the source that say themselves which workloads they are about.
var listed = []schema.GroupKind{
	services,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Kind: "Ingress"},
}

// named are the kinds of the source that are read because something refers to them.
var named = []schema.GroupKind{{Kind: "ConfigMap"}, secrets, {Kind: "ServiceAccount"}}

// found are objects of a namespace, by what tells them apart; nil for those that are absent.
type found struct {
	mu      sync.Mutex
	objects map[plan.Key]*unstructured.Unstructured
}

func newFound() *found { return &found{objects: map[plan.Key]*unstructured.Unstructured{}} }

func (f *found) add(key plan.Key, object *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = object
}

// has says whether it is known if there is an object.
func (f *found) has(key plan.Key) bool {
	_, known := f.objects[key]
	return known
}

// list returns the objects that are there.
func (f *found) list() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range f.objects {
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// objects reads those of the source and of the target.
func (r *reading) objects(ctx context.Context) error {
	source, target := newFound(), newFound()
	written, err := r.lists(ctx, source, target)
	if err != nil {
		return err
	}
	for {
		r.Source, r.Live = source.list(), target.list()
		needs, err := r.Planner.Needs(*r.Situation)
		if err != nil {
			return err
		}
		fromSource := needs.Clone()
		maps.DeleteFunc(fromSource, func(key plan.Key, _ sets.Empty) bool {
			return !slices.Contains(named, key.GroupKind) || r.Situation.Withheld.Has(key.GroupKind) || source.has(key)
		})
		fromTarget := needs.Union(written)
		maps.DeleteFunc(fromTarget, func(key plan.Key, _ sets.Empty) bool { return target.has(key) })
		if len(fromSource)+len(fromTarget) == 0 {
			return nil
		}
		if err := r.byName(ctx, source, fromSource, target, fromTarget); err != nil {
			return err
		}
	}
}

// byName reads objects of the source and of the target.
func (r *reading) byName(
	ctx context.Context, source *found, fromSource sets.Set[plan.Key], target *found, fromTarget sets.Set[plan.Key],
) error {
	group, ctx := r.group(ctx)
	read := func(namespace string, in *found, key plan.Key) {
		group.Go(func() error {
			object, err := r.get(ctx, namespace, key)
			if err == nil {
				in.add(key, object)
			}
			return err
		})
	}
	for key := range fromSource {
		read(r.SourceNamespace, source, key)
	}
	for key := range fromTarget {
		read(r.Environment.Spec.TargetNamespace, target, key)
	}
	return group.Wait()
}

// lists reads what is not known by name. It returns what else the environment has written, to be read by name: Secrets, and
// workloads that are to be read in another version.
func (r *reading) lists(ctx context.Context, source, target *found) (sets.Set[plan.Key], error) {
	group, ctx := r.group(ctx)
	for _, kind := range listed {
		if r.Situation.Withheld.Has(kind) {
			continue
		}
		group.Go(func() error {
			return r.list(ctx, r.SourceNamespace, kind, "", func(object *unstructured.Unstructured) { source.add(plan.KeyOf(object), object) })
		})
	}
	ours, namespace, later := plan.Written(r.Environment).String(), r.Environment.Spec.TargetNamespace, newFound()
	group.Go(func() error {
		return r.listNames(ctx, namespace, secrets, ours, func(name string) { later.add(plan.Key{GroupKind: secrets, Name: name}, nil) })
	})
	for _, kind := range plan.Kinds() {
		if kind == secrets {
			continue
		}
		group.Go(func() error {
			return r.list(ctx, namespace, kind, ours, func(object *unstructured.Unstructured) {
				into, key := target, plan.KeyOf(object)
				if version, ok := r.versions[key]; ok && version != object.GroupVersionKind().Version {
					into = later
				}
				into.add(key, object)
			})
		})
	}
	err := group.Wait()
	return sets.KeySet(later.objects), err
}

// group is for requests that are made at once.
func (r *reading) group(ctx context.Context) (*errgroup.Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Concurrency, 1))
	return group, ctx
}
