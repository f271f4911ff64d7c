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

// listed are the kinds of the source that say themselves which workloads they are about.
var listed = append(plan.GatewayAPIKinds(),
	services,
	schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"},
	schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
)

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
		needs, err := r.Planner.Needs(*r.Input)
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

// isNamed says whether an object of the source is read because something refers to it, if it is not withheld.
func (r *reading) isNamed(key plan.Key) bool {
	if plan.IsOnlyIncluded(key.GroupKind) {
		_, withheld := r.DeniedObjects[key]
		return !withheld && slices.ContainsFunc(r.Environment.Spec.Include, func(o v1alpha1.IncludedObject) bool {
			return plan.KeyOfIncluded(o) == key
		})
	}
	return slices.Contains(named, key.GroupKind) && !r.Input.Denied.Has(key.GroupKind)
}

// byName reads objects of the source and of the target.
func (r *reading) byName(
	ctx context.Context, source *found, fromSource sets.Set[plan.Key], target *found, fromTarget sets.Set[plan.Key],
) error {
	group, ctx := r.group(ctx)
	forbidden := newFound()
	read := func(namespace string, in *found, key plan.Key) {
		group.Go(func() error {
			object, err := r.get(ctx, namespace, key)
			if plan.IsOnlyIncluded(key.GroupKind) && apierrors.IsForbidden(err) {
				// The chart gives no rights on custom resources. Without, the rest is synced.
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
		read(r.SourceNamespace, source, key)
	}
	for key := range fromTarget {
		read(r.Environment.Spec.TargetNamespace, target, key)
	}
	err := group.Wait()
	for key := range forbidden.objects {
		r.DeniedObjects[key] = plan.Denial{Reason: v1alpha1.ReasonPermissionLost, Message: fmt.Sprintf(
			"the server may not get it in %s and %s: grant its account get, create, update, patch, delete and list on the resource there",
			r.SourceNamespace, r.Environment.Spec.TargetNamespace)}
		source.add(key, nil)
	}
	return err
}

// lists reads what is not known by name. It returns what else the environment has written, to be read by name: Secrets, and
// workloads that are to be read in another version.
func (r *reading) lists(ctx context.Context, source, target *found) (sets.Set[plan.Key], error) {
	group, ctx := r.group(ctx)
	for _, kind := range listed {
		if r.Input.Denied.Has(kind) || plan.IsGatewayAPI(kind) && !r.Environment.Spec.Adapt.IngressHosts.Copied() {
			continue
		}
		group.Go(func() error {
			return r.list(ctx, r.SourceNamespace, kind, "", func(object *unstructured.Unstructured) { source.add(plan.KeyOf(object), object) })
		})
	}
	ours, namespace, later := plan.Selector(r.Environment).String(), r.Environment.Spec.TargetNamespace, newFound()
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
	if r.Action != v1alpha1.SyncActionCluster {
		r.grants(ctx, group, source, target, unreadable)
	}
	for key := range r.Base {
		if plan.IsOnlyIncluded(key.GroupKind) {
			later.add(key, nil)
		}
	}
	err := group.Wait()
	r.Unreadable = sets.New[schema.GroupKind]()
	for key := range unreadable.objects {
		r.Unreadable.Insert(key.GroupKind)
	}
	return sets.KeySet(later.objects), err
}

// grants reads what grants rights to ServiceAccounts of the source and the target, of the Roles of the target only the names. Kinds that
// the server may not list are unreadable: environments are synced without.
func (r *reading) grants(ctx context.Context, group *errgroup.Group, source, target, unreadable *found) {
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
	from, to := r.SourceNamespace, r.Environment.Spec.TargetNamespace
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

// group is for requests that are made at once.
func (r *reading) group(ctx context.Context) (*errgroup.Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Concurrency, 1))
	return group, ctx
}
