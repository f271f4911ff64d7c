// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// Recorder records who made which change. It does not block.
type Recorder interface {
	Enqueue(facts ...attribution.Fact)
}

// recordingOptions wrap storage so that a recorder is notified of changes.
type recordingOptions struct {
	generic.RESTOptionsGetter
	recorder Recorder
	clock    clock.PassiveClock
}

// GetRESTOptions returns the options of a resource with its storage wrapped in recordingStorage.
func (o *recordingOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, getAttrs, triggers, indexers)
		return &recordingStorage{Interface: store, resource: resource, recorder: o.recorder, clock: o.clock}, destroy, err
	}
	return options, nil
}

// recordingStorage records the author of each stored change that a request made. It ignores status subresources and
// writes within the process without a request.
//
// This is the one place that every write reaches and no dry run does. A deletecollection reaches it once for each
// object.
//
// The user is the one of the request. With impersonation that is the impersonated user: kube-apiserver authorizes the
// impersonation, and its aggregator only forwards the impersonated user's name, groups and extra fields. The
// impersonating user is only known to kube-apiserver's audit log.
type recordingStorage struct {
	storage.Interface
	resource schema.GroupResource
	recorder Recorder
	clock    clock.PassiveClock
}

// Create creates an object and records the creation.
func (s *recordingStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.Interface.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	s.record(ctx, out, "", false)
	return nil
}

// GuaranteedUpdate creates or updates an object and records the change. It does not record an update without changes,
// or the deletion of an object that already waits for its finalizers.
func (s *recordingStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object,
) error {
	var before string
	var generation int64
	recordingUpdate := func(existing runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		before, generation = resourceVersionOf(existing), generationOf(existing)
		return tryUpdate(existing, response)
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, recordingUpdate, cachedExistingObject)
	if err != nil {
		return err
	}
	if resourceVersionOf(destination) != before && (!bySubresource(ctx) || generationOf(destination) != generation) {
		s.record(ctx, destination, before, false)
	}
	return nil
}

// bySubresource reports whether a request is for a subresource.
func bySubresource(ctx context.Context) bool {
	request, found := genericapirequest.RequestInfoFrom(ctx)
	return found && request.Subresource != ""
}

// Delete deletes an object and records the deletion.
func (s *recordingStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cachedExistingObject, opts)
	if err != nil {
		return err
	}
	s.record(ctx, out, "", true)
	return nil
}

// record records that a request changed or deleted obj. before is the previous resourceVersion, empty if there was none
// or it is unknown.
func (s *recordingStorage) record(ctx context.Context, obj runtime.Object, before string, gone bool) {
	actor, ok := actorOf(ctx)
	request, found := genericapirequest.RequestInfoFrom(ctx)
	if !ok || !found {
		return
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return // everything that is stored has metadata
	}
	now := s.clock.Now()
	begun, found := genericapirequest.ReceivedTimestampFrom(ctx)
	if !found {
		begun = now
	}
	s.recorder.Enqueue(s.fact(object, operationOf(request, before, gone), gone, begun, now, actor))
}

func (s *recordingStorage) fact(
	object metav1.Object, operation v1alpha1.Operation, gone bool, begun, ended time.Time, actor attribution.Actor,
) attribution.Fact {
	return attribution.Fact{
		ID:     string(uuid.NewUUID()),
		Signal: attribution.Audit, Operation: operation,
		Group: s.resource.Group, Resource: s.resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), After: object.GetResourceVersion(),
		Lasting: operation == v1alpha1.OperationDelete && !gone,
		Begun:   begun, Ended: ended, Actor: actor,
	}
}

// operationOf returns the operation of a request. The verb distinguishes a deletion that finalizers block from an
// update, and an update that completes a deletion from that deletion. Server-side apply can create an object.
func operationOf(request *genericapirequest.RequestInfo, before string, gone bool) v1alpha1.Operation {
	switch request.Verb {
	case "delete", "deletecollection":
		return v1alpha1.OperationDelete
	default:
		if before == "" && !gone {
			return v1alpha1.OperationCreate
		}
		return v1alpha1.OperationUpdate
	}
}

// actorOf returns the authenticated user of a request as an attribution actor.
func actorOf(ctx context.Context) (attribution.Actor, bool) {
	info, found := userOf(ctx)
	if !found {
		return attribution.Actor{}, false
	}
	return attribution.NewActor(info.GetName(), info.GetGroups(), info.GetExtra()), true
}

// userOf returns the authenticated user of a request.
func userOf(ctx context.Context) (user.Info, bool) {
	info, found := genericapirequest.UserFrom(ctx)
	return info, found && info.GetName() != "" && info.GetName() != user.Anonymous
}

func resourceVersionOf(obj runtime.Object) string {
	object, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return object.GetResourceVersion()
}
