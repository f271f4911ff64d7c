// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	// defaultWaitTimeout limits how long a response waits for the outcome of a request. The aggregator's request
	// timeout is 34 s.
	defaultWaitTimeout = 10 * time.Second
	// requestRetrySeconds is the Retry-After of a response to a request that is rejected because too many are pending.
	requestRetrySeconds = 10
)

// requestREST is a subresource that accepts requests for the object in its path. Each is validated and executed; none
// is stored. R is a pointer to the internal type of the requests.
type requestREST[R object] struct {
	newRequest func() R
	// clusterScoped is set if the objects have no namespaces.
	clusterScoped bool
	// validate validates a request for the named object, before admission.
	validate func(ctx context.Context, name string, request R) error
	// execute performs a request for the named object and writes its outcome into it. A dry run changes nothing, and is
	// rejected if the request would be.
	execute func(ctx context.Context, name string, request R, dryRun []string) error
}

var (
	_ rest.Storage      = &requestREST[*configbutler.MirrorSync]{}
	_ rest.Scoper       = &requestREST[*configbutler.MirrorSync]{}
	_ rest.NamedCreater = &requestREST[*configbutler.MirrorSync]{}
)

// New returns an empty request.
func (r *requestREST[R]) New() runtime.Object { return r.newRequest() }

// Destroy does nothing: the main endpoints own the storage.
func (*requestREST[R]) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *requestREST[R]) NamespaceScoped() bool { return !r.clusterScoped }

// Create executes a request for the named object.
func (r *requestREST[R]) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.DeepCopyObject().(R)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %T: %T", r.newRequest(), obj))
	}
	if err := r.validate(ctx, name, request); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, request.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	request.SetName(name)
	request.SetManagedFields(nil)
	if err := r.execute(ctx, name, request, options.DryRun); err != nil {
		return nil, err
	}
	return request, nil
}

// requester returns the authenticated user of a request. The body is ignored.
func requester(ctx context.Context) (string, error) {
	actor, ok := actorOf(ctx)
	if !ok {
		return "", apierrors.NewUnauthorized("who makes the request is recorded, and the request is not authenticated")
	}
	return actor.Username, nil
}

// invalid returns an Invalid error for a request, or nil without errors.
func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(configbutler.Kind(kind), name, errs)
}

// refused returns a Conflict: the state of the object does not allow the request.
func refused(resource, name, reason string) error {
	return apierrors.NewConflict(configbutler.Resource(resource), name, errors.New(reason))
}

// read gets an object.
func read[O object](ctx context.Context, store rest.Getter, name string) (O, error) {
	obj, err := store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return *new(O), err
	}
	return as[O](obj)
}

// change updates an object with edit, retrying on conflicts, and returns the stored object. A dry run validates the
// change without storing it.
func change[O object](
	ctx context.Context, store *genericregistry.Store, name string, dryRun []string, edit func(stored O) error,
) (O, error) {
	changed := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		edited, err := as[O](stored.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		return edited, edit(edited)
	}
	obj, _, err := store.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, changed),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	if err != nil {
		return *new(O), err
	}
	return as[O](obj)
}

// await calls seen for each version of the named object after the resourceVersion since, until seen returns true, the
// object is deleted or the timeout expires. The latter is no error: the request is processed all the same. With an
// empty since, it starts with the current or a recent version.
func await[O object](
	ctx context.Context, waitTimeout time.Duration, store rest.Watcher, name, since string, seen func(O) (enough bool),
) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	watched, err := store.Watch(ctx, &internalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name), ResourceVersion: since,
	})
	if err != nil {
		return
	}
	defer watched.Stop()
	for {
		select {
		case event, open := <-watched.ResultChan():
			if !open || event.Type == watch.Deleted {
				return
			}
			if obj, ok := watchedObject[O](event); ok && seen(obj) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// watchedObject returns the object of an event, which must not be modified. It returns false for errors and bookmarks.
func watchedObject[O object](event watch.Event) (O, bool) {
	obj := event.Object
	if cached, ok := obj.(runtime.CacheableObject); ok { // the watch cache shares its objects in this shape
		obj = cached.GetObject()
	}
	out, ok := obj.(O)
	return out, ok && event.Type != watch.Bookmark
}

// as asserts the type of an object from a store.
func as[O object](obj runtime.Object) (O, error) {
	out, ok := obj.(O)
	if !ok {
		return out, fmt.Errorf("got a %T instead of a %T", obj, out)
	}
	return out, nil
}
