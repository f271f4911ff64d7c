// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

var (
	services = schema.GroupKind{Kind: "Service"}
	secrets  = schema.GroupKind{Kind: "Secret"}
)

// listed are the kinds that are listed in the source, because their objects select or name workloads.
var listed = append(plan.GatewayAPIKinds(),
	services,
	schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
)

// named are the kinds that are read by name in the source, because other objects refer to them.
var named = []schema.GroupKind{{Kind: "ConfigMap"}, secrets, {Kind: "ServiceAccount"}}

// found holds the objects that were read from a namespace, nil for those that do not exist.
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

// has reports whether the object has been read, or found not to exist.
func (f *found) has(key plan.Key) bool {
	_, known := f.objects[key]
	return known
}

// list returns the objects that exist.
func (f *found) list() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, object := range f.objects {
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// objects reads the objects of the source and the target, until the planner needs no more.
func (r *stateReading) objects(ctx context.Context) error {
	source, target := newFound(), newFound()
	written, err := r.lists(ctx, source, target)
	if err != nil {
		return err
	}
	for {
		r.state.Source, r.state.Live = source.list(), target.list()
		needs, err := r.reader.Planner.Needs(*r.state)
		if err != nil {
			return err
		}
		fromSource := needs.Clone()
		maps.DeleteFunc(fromSource, func(key plan.Key, _ sets.Empty) bool {
			return !r.isNamed(key) || source.has(key)
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

// isNamed reports whether an object of the source is read by name, and not withheld.
func (r *stateReading) isNamed(key plan.Key) bool {
	if plan.IsOnlyIncluded(key.GroupKind) {
		_, withheld := r.state.DeniedObjects[key]
		return !withheld && slices.ContainsFunc(r.state.Environment.Spec.Include, func(o v1alpha1.IncludedObject) bool {
			return plan.KeyOfIncluded(o) == key
		})
	}
	return slices.Contains(named, key.GroupKind) && !r.state.Denied.Has(key.GroupKind)
}

// byName reads objects of the source and the target by name.
func (r *stateReading) byName(
	ctx context.Context, source *found, fromSource sets.Set[plan.Key], target *found, fromTarget sets.Set[plan.Key],
) error {
	group, ctx := r.group(ctx)
	forbidden := newFound()
	read := func(namespace string, in *found, key plan.Key) {
		group.Go(func() error {
			object, err := r.get(ctx, namespace, key)
			if plan.IsOnlyIncluded(key.GroupKind) && apierrors.IsForbidden(err) {
				// The chart grants no access to custom resources. All other objects are synced without it.
				forbidden.add(key, nil)
				object, err = nil, nil
			}
			if err == nil {
				in.add(key, object)
			}
			return err
		})
	}
	for key := range fromSource {
		read(r.state.SourceNamespace, source, key)
	}
	for key := range fromTarget {
		read(r.state.Environment.Spec.TargetNamespace, target, key)
	}
	err := group.Wait()
	for key := range forbidden.objects {
		r.state.DeniedObjects[key] = plan.Denial{Reason: v1alpha1.ReasonPermissionLost, Message: fmt.Sprintf(
			"the server may not get it in %s and %s: grant its account get, create, update, patch, delete and list on the resource there",
			r.state.SourceNamespace, r.state.Environment.Spec.TargetNamespace)}
		source.add(key, nil)
	}
	return err
}

// lists lists the objects whose names are not known. It returns the written objects that must then be read by name: Secrets, and
// workloads that are read in another version.
func (r *stateReading) lists(ctx context.Context, source, target *found) (sets.Set[plan.Key], error) {
	group, ctx := r.group(ctx)
	for _, kind := range listed {
		if r.state.Denied.Has(kind) || plan.IsGatewayAPI(kind) && !r.state.Environment.Spec.Adapt.IngressHosts.Copied() {
			continue
		}
		group.Go(func() error {
			return r.list(ctx, r.state.SourceNamespace, kind, "", func(object *unstructured.Unstructured) { source.add(plan.KeyOf(object), object) })
		})
	}
	ours, namespace, later := plan.Selector(r.state.Environment).String(), r.state.Environment.Spec.TargetNamespace, newFound()
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
	unreadable := newFound()
	if r.state.Action != v1alpha1.SyncActionCluster {
		r.grants(ctx, group, source, target, unreadable)
	}
	for key := range r.state.Base {
		if plan.IsOnlyIncluded(key.GroupKind) {
			later.add(key, nil)
		}
	}
	err := group.Wait()
	r.state.Unreadable = sets.New[schema.GroupKind]()
	for key := range unreadable.objects {
		r.state.Unreadable.Insert(key.GroupKind)
	}
	return sets.KeySet(later.objects), err
}

// grants lists the bindings of ServiceAccounts of the source and the target, and the names of the Roles of the target. Kinds that
// the server is not allowed to list are recorded as unreadable: the environment is synced without them.
func (r *stateReading) grants(ctx context.Context, group *errgroup.Group, source, target, unreadable *found) {
	unlessForbidden := func(kind schema.GroupKind, list func() error) {
		group.Go(func() error {
			err := list()
			if apierrors.IsForbidden(err) {
				unreadable.add(plan.Key{GroupKind: kind}, nil)
				return nil
			}
			return err
		})
	}
	from, to := r.state.SourceNamespace, r.state.Environment.Spec.TargetNamespace
	bindings := func(kind schema.GroupKind, namespace string, into *found) {
		unlessForbidden(kind, func() error {
			return r.list(ctx, namespace, kind, "", func(object *unstructured.Unstructured) {
				if plan.Binds(object, from, to) {
					into.add(plan.KeyOf(object), object)
				}
			})
		})
	}
	bindings(plan.ClusterRoleBindings, metav1.NamespaceAll, source)
	bindings(plan.RoleBindings, from, source)
	bindings(plan.RoleBindings, to, target)
	unlessForbidden(plan.Roles, func() error {
		return r.listNames(ctx, to, plan.Roles, "", func(name string) {
			role := &unstructured.Unstructured{}
			role.SetGroupVersionKind(plan.Roles.WithVersion("v1"))
			role.SetName(name)
			target.add(plan.KeyOf(role), role)
		})
	})
}

// group returns an errgroup with the concurrency limit.
func (r *stateReading) group(ctx context.Context) (*errgroup.Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.reader.Concurrency, 1))
	return group, ctx
}
