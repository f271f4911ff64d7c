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

	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// ignoredTypes are types whose objects do not keep a namespace.
var ignoredTypes = sets.New(
	schema.GroupResource{Resource: "events"},
	schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
	schema.GroupResource{Resource: "endpoints"},
	schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
	schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"},
)

// standardObjects are created in each namespace by the cluster or by widespread add-ons.
var standardObjects = map[schema.GroupResource]sets.Set[string]{
	{Resource: "serviceaccounts"}: sets.New("default"),
	{Resource: "configmaps"}:      sets.New("kube-root-ca.crt", "istio-ca-root-cert", "openshift-service-ca.crt"),
}

// pageSize is the number of objects of a type per request.
const pageSize = 100

// foreignObjects returns what of some types keeps a namespace, at most one sentence for each type.
func (r *Remover) foreignObjects(
	ctx context.Context, namespace string, types map[schema.GroupVersionResource]string,
) ([]string, error) {
	var (
		mu     sync.Mutex
		others []string
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Concurrency, 1))
	for resource, kind := range types {
		group.Go(func() error {
			found, err := r.foreignObject(ctx, namespace, resource, kind)
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

// types returns the types that users can create objects of, with their kinds. The types of the group versions in unknown, usually those of
// an aggregated API that does not respond, are missing.
func (r *Remover) types(ctx context.Context) (types map[schema.GroupVersionResource]string, unknown []string, err error) {
	lists, err := r.Discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, fmt.Errorf("find the types that can be in a namespace: %w", err)
	}
	for version := range failed {
		unknown = append(unknown, version.String())
	}
	types = map[schema.GroupVersionResource]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("find the types that can be in a namespace: %w", err)
		}
		for _, resource := range list.APIResources {
			if of := version.WithResource(resource.Name); !ignoredTypes.Has(of.GroupResource()) {
				types[of] = resource.Kind
			}
		}
	}
	return types, unknown, nil
}

// foreignObject describes an object that keeps a namespace, or why that cannot be determined.
func (r *Remover) foreignObject(ctx context.Context, namespace string, resource schema.GroupVersionResource, kind string) (string, error) {
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		if err := r.Limiter.Wait(ctx); err != nil {
			return "", err
		}
		list, err := r.Client.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Sprintf("the server may not list %s, of which there may be some", resource.GroupResource()), nil
		case apierror.IsAbsent(err), apierrors.IsMethodNotSupported(err):
			return "", nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			options.Continue = ""
			continue
		case err != nil:
			return "", fmt.Errorf("list %s in %s: %w", resource.GroupResource(), namespace, err)
		}
		for i := range list.Items {
			if keepsNamespace(resource.GroupResource(), &list.Items[i]) {
				return kind + " " + list.Items[i].Name + " is not of this environment", nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return "", nil
		}
	}
}

func keepsNamespace(resource schema.GroupResource, object *metav1.PartialObjectMetadata) bool {
	return object.DeletionTimestamp == nil && len(object.OwnerReferences) == 0 && !standardObjects[resource].Has(object.Name)
}
