// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// restOptionsGetter wraps the storage of every resource in an explainingStorage.
type restOptionsGetter struct {
	generic.RESTOptionsGetter
	monitor *Monitor
}

// NewRESTOptionsGetter wraps a getter so that errors of reads that fail because of an unreadable record name the record,
// and the command that sets it aside.
func NewRESTOptionsGetter(delegate generic.RESTOptionsGetter, monitor *Monitor) generic.RESTOptionsGetter {
	return restOptionsGetter{delegate, monitor}
}

// GetRESTOptions returns the options of a resource, with its storage wrapped in an explainingStorage.
func (g restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, getAttrs, triggers, indexers)
		return &explainingStorage{Interface: store, resource: resource, monitor: g.monitor}, destroy, err
	}
	return options, nil
}

// explainingStorage is a storage whose errors name the records that cannot be read.
type explainingStorage struct {
	storage.Interface
	resource schema.GroupResource
	monitor  *Monitor
}

// GetList implements storage.Interface.
func (s *explainingStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.explain(ctx, s.Interface.GetList(ctx, key, opts, list), "")
}

// Watch implements storage.Interface. A watch may begin with a list.
func (s *explainingStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (apiwatch.Interface, error) {
	watch, err := s.Interface.Watch(ctx, key, opts)
	return watch, s.explain(ctx, err, "")
}

// Get implements storage.Interface.
func (s *explainingStorage) Get(ctx context.Context, key string, opts storage.GetOptions, object runtime.Object) error {
	return s.explain(ctx, s.Interface.Get(ctx, key, opts, object), key)
}

// explain returns an error that names the unreadable records, if the error of a read was caused by any, and otherwise
// err. key is the suffix of the key of the record that was read, or empty for a list.
func (s *explainingStorage) explain(ctx context.Context, err error, key string) error {
	if err == nil || ctx.Err() != nil || !mayBeUnreadable(err, key) {
		return err
	}
	found := s.monitor.of(s.resource)
	if key != "" {
		found = found.only(key)
		if found.count == 0 && storage.IsCorruptObject(err) {
			found = finding{count: 1, first: []Record{{Resource: s.resource, Key: key, Err: err}}}
		}
	} else if met := fromCauses(s.resource, err); met.count > found.count {
		found = met
	}
	if found.count == 0 {
		if isUnfilled(err, key) { // This is normal at every start. The regular checks find the cause, faster if it lasts.
			s.monitor.unfilled.Store(true)
		} else {
			s.monitor.lookSoon()
		}
		return err
	}
	return found.statusError(s.resource)
}

// mayBeUnreadable reports whether an error of a read may be caused by an unreadable record: errors of upstream's storage,
// and of a watch cache that cannot be initialized because of such a record.
func mayBeUnreadable(err error, key string) bool {
	return storage.IsCorruptObject(err) || storage.IsInternalError(err) ||
		apierrors.ReasonForError(err) == metav1.StatusReasonStoreReadError || isUnfilled(err, key)
}

// isUnfilled reports whether an error of a list means that a watch cache is not initialized yet.
func isUnfilled(err error, key string) bool {
	return key == "" && (apierrors.IsTooManyRequests(err) || errors.Is(err, storage.ErrStorageNotReady))
}

// fromCauses returns the records that are named in upstream's error of a list.
func fromCauses(resource schema.GroupResource, err error) (found finding) {
	var status apierrors.APIStatus
	if apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError || !errors.As(err, &status) || status.Status().Details == nil {
		return found
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "" {
			continue
		}
		found.count++
		if len(found.first) < named {
			found.first = append(found.first, Record{Resource: resource, Key: cause.Field, Err: errors.New(cause.Message)})
		}
	}
	return found
}

// only returns the finding for the record whose key ends with key.
func (f finding) only(key string) (one finding) {
	for _, record := range f.first {
		if strings.HasSuffix(record.Key, "/"+strings.TrimPrefix(key, "/")) {
			return finding{count: 1, first: []Record{record}}
		}
	}
	return one
}

// statusError returns the error of a read, with the command to run. Upstream's reason distinguishes it from transient
// errors.
func (f finding) statusError(resource schema.GroupResource) error {
	record := f.first[0]
	message := fmt.Sprintf("the stored record of %s %s cannot be read: %v; %q, with the key %q, sets it aside, "+
		"and the others can be read again",
		resource, record.Name(), record.Err, Command, record.Key)
	if f.count > 1 {
		message = fmt.Sprintf("%d stored records of %s cannot be read, such as %s with the key %q: %v; "+
			"%q sets them aside, and the others can be read again",
			f.count, resource, record.Name(), record.Key, record.Err, Command)
	}
	details := &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource}
	for _, each := range f.first {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: each.Key, Message: each.Err.Error(),
		})
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: message, Details: details,
	}}
}
