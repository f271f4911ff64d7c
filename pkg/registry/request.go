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
	// defaultPatience is how long an answer waits for what comes of a request. The aggregator cuts requests off after 34 s.
	defaultPatience = 10 * time.Second
	// requestRetrySeconds is when a client should try again that was sent away because too many requests wait.
	requestRetrySeconds = 10
)

// requestREST is a subresource at which requests for the object in the path are created. Each is judged, carried out and
// answered; none is stored. R is a pointer to the internal type of the requests.
type requestREST[R object] struct {
	newRequest func() R
	// clusterScoped says that the objects that requests are for have no namespaces.
	clusterScoped bool
	// judge says what is wrong with a request for the object called name, before admission is asked.
	judge func(ctx context.Context, name string, request R) error
	// carryOut does for the object called name what a request asks for, and writes the answer into it. A dry run changes
	// nothing, and is refused when the request would be.
	carryOut func(ctx context.Context, name string, request R, dryRun []string) error
}

var (
	_ rest.Storage      = &requestREST[*configbutler.MirrorSync]{}
	_ rest.Scoper       = &requestREST[*configbutler.MirrorSync]{}
	_ rest.NamedCreater = &requestREST[*configbutler.MirrorSync]{}
)

// New returns an empty request.
func (r *requestREST[R]) New() runtime.Object { return r.newRequest() }

// Destroy leaves the storage to the main endpoints, which own it.
func (*requestREST[R]) Destroy() {}

// NamespaceScoped says whether the objects that requests are for have namespaces.
func (r *requestREST[R]) NamespaceScoped() bool { return !r.clusterScoped }

// Create carries out a request for the object called name.
func (r *requestREST[R]) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.DeepCopyObject().(R)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %T: %T", r.newRequest(), obj))
	}
	if err := r.judge(ctx, name, request); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, request.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	request.SetName(name)
	request.SetManagedFields(nil)
	if err := r.carryOut(ctx, name, request, options.DryRun); err != nil {
		return nil, err
	}
	return request, nil
}

// requester is the authenticated user who makes a request; what its body says is no matter.
func requester(ctx context.Context) (string, error) {
	actor, ok := actorOf(ctx)
	if !ok {
		return "", apierrors.NewUnauthorized("who makes the request is recorded, and nobody is authenticated")
	}
	return actor.Username, nil
}

// invalid is what is wrong with a request of a kind, nil when nothing is.
func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(configbutler.Kind(kind), name, errs)
}

// refused is a Conflict: the object in the path is not in a state in which a request can be carried out.
func refused(resource, name, reason string) error {
	return apierrors.NewConflict(configbutler.Resource(resource), name, errors.New(reason))
}

// read gets an object.
func read[O object](ctx context.Context, store rest.Getter, name string) (O, error) {
	obj, err := store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return *new(O), err
	}
	return typed[O](obj)
}

// change lets edit change an object as it is stored, again when somebody else was faster, and returns what is stored then. A
// dry run judges the change and does not store it.
func change[O object](
	ctx context.Context, store *genericregistry.Store, name string, dryRun []string, edit func(stored O) error,
) (O, error) {
	changed := func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		edited, err := typed[O](stored.DeepCopyObject())
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
	return typed[O](obj)
}

// await shows the object called name to seen, as often as it changes after the resourceVersion since, until seen has seen
// enough, the object is deleted or patience ends: what is waited for happens all the same. Without since, it begins with how
// the object is, or was a moment ago.
func await[O object](
	ctx context.Context, patience time.Duration, store rest.Watcher, name, since string, seen func(O) (enough bool),
) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// watchedObject is the object of an event, which must not be changed; of an error or a bookmark there is none.
func watchedObject[O object](event watch.Event) (O, bool) {
	obj := event.Object
	if cached, ok := obj.(runtime.CacheableObject); ok { // the watch cache shares its objects in this shape
		obj = cached.GetObject()
	}
	out, ok := obj.(O)
	return out, ok && event.Type != watch.Bookmark
}

// typed says that an object is of the type that its store holds.
func typed[O object](obj runtime.Object) (O, error) {
	out, ok := obj.(O)
	if !ok {
		return out, fmt.Errorf("got a %T instead of a %T", obj, out)
	}
	return out, nil
}
