// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// useless are types whose objects are of no use by themselves.
var useless = sets.New(
	schema.GroupResource{Resource: "events"},
	schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
	schema.GroupResource{Resource: "endpoints"},
	schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
	schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"},
)

// everywhere are the objects that a cluster, or a widespread addition to it, makes in each namespace.
var everywhere = map[schema.GroupResource]sets.Set[string]{
	{Resource: "serviceaccounts"}: sets.New("default"),
	{Resource: "configmaps"}:      sets.New("kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"),
}

// page is how many objects of a type are looked at with one request.
const page = 100

// others returns what keeps a namespace, by one sentence a type.
func (r *Remover) others(ctx context.Context, namespace string) ([]string, error) {
	types, err := r.types(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu     sync.Mutex
		others []string
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Concurrency, 1))
	for resource, kind := range types {
		group.Go(func() error {
			found, err := r.other(ctx, namespace, resource, kind)
			if found != "" {
				mu.Lock()
				defer mu.Unlock()
				others = append(others, found)
			}
			return err
		})
	}
	return others, group.Wait()
}

// types are those of which people make objects, with their kinds.
func (r *Remover) types(ctx context.Context) (map[schema.GroupVersionResource]string, error) {
	lists, err := r.Types.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the types that can be in a namespace: %w", err)
	}
	types := map[schema.GroupVersionResource]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("find the types that can be in a namespace: %w", err)
		}
		for _, resource := range list.APIResources {
			if of := version.WithResource(resource.Name); !useless.Has(of.GroupResource()) {
				types[of] = resource.Kind
			}
		}
	}
	return types, nil
}

// other returns an object of a type that keeps a namespace, or why it is not known if there is one.
func (r *Remover) other(ctx context.Context, namespace string, resource schema.GroupVersionResource, kind string) (string, error) {
	for options := (metav1.ListOptions{Limit: page}); ; {
		if err := r.Limiter.Wait(ctx); err != nil {
			return "", err
		}
		list, err := r.Client.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("the server may not list %s, of which there may be some", resource.GroupResource()), nil
		case isAbsent(err), apierrors.IsMethodNotSupported(err):
			return "", nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			options.Continue = ""
			continue
		case err != nil:
			return "", fmt.Errorf("list %s in %s: %w", resource.GroupResource(), namespace, err)
		}
		for i := range list.Items {
			if counts(resource.GroupResource(), &list.Items[i]) {
				return kind + " " + list.Items[i].Name + " is not of this environment", nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return "", nil
		}
	}
}

func counts(resource schema.GroupResource, object *metav1.PartialObjectMetadata) bool {
	return object.DeletionTimestamp == nil && len(object.OwnerReferences) == 0 && !everywhere[resource].Has(object.Name)
}
