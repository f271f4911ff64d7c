// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// changeStore is what the endpoint of Changes needs of their storage.
type changeStore interface {
	rest.StorageWithReadiness
	rest.Scoper
	rest.SingularNameProvider
	rest.StorageVersionProvider
}

// changeREST is the endpoint of Changes. A user sees those of the objects of which the user has the permission get on the type, in the
// namespace of the object: a Change names its object. The others do not exist for the user.
type changeREST struct {
	changeStore
	store *genericregistry.Store
	// decides on permissions. Without it, no user sees any Change.
	decides authorizer.Authorizer
}

var (
	_ readChanges             = &changeREST{}
	_ rest.ShortNamesProvider = &changeREST{}
)

// readChanges is what the API offers of Changes. They cannot be deleted: the cluster deletes with a namespace what has this verb.
type readChanges interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// ShortNames implements rest.ShortNamesProvider. Changes are not in the category of the other kinds: there may be many.
func (*changeREST) ShortNames() []string { return changes().shortNames }

// Get implements rest.Getter.
func (r *changeREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	visible, err := r.reviews(ctx).visible(ctx, obj)
	if err != nil {
		return nil, err
	}
	if !visible {
		return nil, apierrors.NewNotFound(r.store.DefaultQualifiedResource, name)
	}
	return obj, nil
}

// NewList implements rest.Lister.
func (r *changeREST) NewList() runtime.Object { return r.store.NewList() }

// ConvertToTable implements rest.Lister.
func (r *changeREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

// List implements rest.Lister. It reads on until the page is full or there are no more: a page that was shorter because of Changes that the
// user may not see, and a token behind one of them, would show that they exist.
func (r *changeREST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	options = options.DeepCopy()
	reviews, limit := r.reviews(ctx), options.Limit
	items, version := []configbutler.Change{}, ""
	for {
		list, err := r.page(ctx, options)
		if err != nil {
			return nil, err
		}
		visible, err := reviews.ofList(ctx, list)
		if err != nil {
			return nil, err
		}
		items = append(items, visible...)
		if version == "" {
			version = list.ResourceVersion // What comes while further ones are read is watched.
		}
		if limit == 0 || list.Continue == "" || int64(len(items)) >= limit {
			list.Items, list.ResourceVersion, list.RemainingItemCount = items, version, nil
			return list, nil
		}
		// If these fill the page, the user may see the last one, behind which the token is.
		options.Continue, options.Limit = list.Continue, limit-int64(len(items))
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
}

// page reads a page of all Changes.
func (r *changeREST) page(ctx context.Context, options *internalversion.ListOptions) (*configbutler.ChangeList, error) {
	obj, err := r.store.List(ctx, options)
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*configbutler.ChangeList)
	if !ok {
		return nil, fmt.Errorf("the storage of Changes returned a list of %T", obj)
	}
	return list, nil
}

// Watch implements rest.Watcher. Permissions are reviewed for each event.
func (r *changeREST) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	events, err := r.store.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return newFilteredWatch(events, func(event watch.Event) (bool, error) {
		if event.Type == watch.Bookmark || event.Type == watch.Error {
			return true, nil
		}
		return r.reviews(ctx).visible(ctx, event.Object)
	}), nil
}

func (r *changeREST) reviews(ctx context.Context) *changeReviews {
	sender, _ := genericapirequest.UserFrom(ctx)
	return &changeReviews{access.NewReader(r.decides, sender)}
}

// changeReviews are the permissions of a user in one request.
type changeReviews struct{ reader *access.Reader }

// ofList returns the Changes of a list that the user may see.
func (r *changeReviews) ofList(ctx context.Context, list *configbutler.ChangeList) (visible []configbutler.Change, err error) {
	for i := range list.Items {
		see, err := r.visible(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if see {
			visible = append(visible, list.Items[i])
		}
	}
	return visible, nil
}

// visible reports whether the user may see a Change.
func (r *changeReviews) visible(ctx context.Context, obj runtime.Object) (bool, error) {
	change, err := as[*configbutler.Change](obj)
	if err != nil {
		return false, err
	}
	object := change.Spec.Object
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil {
		return false, fmt.Errorf("read the version of the object of Change %s: %w", change.Name, err)
	}
	visible, err := r.reader.May(ctx, "get", version.WithResource(object.Resource).GroupResource(), object.Namespace, "")
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return visible, nil
}
