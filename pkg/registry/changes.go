// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

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

// List implements rest.Lister. The storage selects what the user may see, and reads on until the page is full: a page that was shorter because
// of Changes that the user may not see, and a token behind one of them, would show that they exist.
func (r *changeREST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	label, field := labels.Everything(), fields.Everything()
	if options.LabelSelector != nil {
		label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		field = options.FieldSelector
	}
	predicate, failed := r.reviews(ctx).narrow(ctx, r.store.PredicateFunc(label, field))
	list, err := r.store.ListPredicate(ctx, predicate, options)
	if err := cmp.Or(failed(), err); err != nil {
		return nil, err
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

// visibleField is a field of the Changes that the user of a list may see. It is not in fieldSelector of the API.
const visibleField = "visible"

// narrow returns a predicate that selects only what the user may see. Upstream's storage leaves out an object if the predicate fails, so that
// failed returns the first error.
func (r *changeReviews) narrow(
	ctx context.Context, predicate storage.SelectionPredicate,
) (narrowed storage.SelectionPredicate, failed func() error) {
	var first error
	attributes := predicate.GetAttrs
	predicate.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if first != nil {
			return nil, nil, first
		}
		visible, err := r.visible(ctx, obj)
		if err != nil {
			first = err
			return nil, nil, err
		}
		ofLabels, ofFields, err := attributes(obj)
		if err == nil && visible {
			ofFields[visibleField] = "true"
		}
		return ofLabels, ofFields, err
	}
	predicate.Field = fields.AndSelectors(predicate.Field, fields.OneTermEqualSelector(visibleField, "true"))
	return predicate, func() error { return first }
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
