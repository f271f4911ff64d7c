// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Reader lists and watches for Streams and Listers. Objects returns one for whole objects, Metadata one for their metadata.
type Reader interface {
	list(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	// watch returns *unstructured.Unstructured objects, except for the *metav1.Status of an error.
	watch(ctx context.Context, watch Watch, options metav1.ListOptions) (watch.Interface, error)
}

// Objects returns a Reader of whole objects.
func Objects(client dynamic.Interface) Reader {
	return wholeReader{client}
}

// Metadata returns a Reader of objects' metadata. The API server leaves out everything else, so that the data of a Secret
// never enters the process. The fields in managedFields are removed, because they contain the keys of that data.
//
// The apiVersion of an object is that of its Watch. Its kind is empty, because the resource does not determine it.
func Metadata(client metadata.Interface) Reader {
	return metadataReader{client}
}

// Labelled returns a Reader of only those objects that the label selector of their type matches. An empty selector matches all. The API
// server evaluates the selector. A watch reports an object that no longer matches as deleted.
func Labelled(reader Reader, selector func(schema.GroupResource) string) Reader {
	return labelledReader{reader, selector}
}

type labelledReader struct {
	reader   Reader
	selector func(schema.GroupResource) string
}

func (r labelledReader) list(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	options.LabelSelector = r.selector(watch.Resource.GroupResource())
	return r.reader.list(ctx, watch, options)
}

func (r labelledReader) watch(ctx context.Context, watch Watch, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = r.selector(watch.Resource.GroupResource())
	return r.reader.watch(ctx, watch, options)
}

type wholeReader struct {
	client dynamic.Interface
}

func (r wholeReader) list(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return r.of(watch).List(ctx, options)
}

func (r wholeReader) watch(ctx context.Context, watch Watch, options metav1.ListOptions) (watch.Interface, error) {
	return r.of(watch).Watch(ctx, options)
}

func (r wholeReader) of(watch Watch) dynamic.ResourceInterface {
	if watch.Namespace == "" {
		return r.client.Resource(watch.Resource)
	}
	return r.client.Resource(watch.Resource).Namespace(watch.Namespace)
}

type metadataReader struct {
	client metadata.Interface
}

func (r metadataReader) list(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	partial, err := r.of(watch).List(ctx, options)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, 0, len(partial.Items))}
	list.SetResourceVersion(partial.ResourceVersion)
	list.SetContinue(partial.Continue)
	for i := range partial.Items {
		object, err := metadataObject(watch, &partial.Items[i])
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *object)
	}
	return list, nil
}

func (r metadataReader) watch(ctx context.Context, watched Watch, options metav1.ListOptions) (watch.Interface, error) {
	opened, err := r.of(watched).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return newMappedWatch(ctx, opened, func(event watch.Event) watch.Event { return metadataEvent(watched, event) }), nil
}

func (r metadataReader) of(watch Watch) metadata.ResourceInterface {
	if watch.Namespace == "" {
		return r.client.Resource(watch.Resource)
	}
	return r.client.Resource(watch.Resource).Namespace(watch.Namespace)
}

// metadataEvent converts the object of an event. Errors and other objects are unchanged; the Reflector reports them.
func metadataEvent(watched Watch, event watch.Event) watch.Event {
	partial, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return event
	}
	object, err := metadataObject(watched, partial)
	if err != nil {
		return watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
		}}
	}
	event.Object = object
	return event
}

// metadataObject returns an object that has only metadata.
func metadataObject(watch Watch, partial *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	for i := range partial.ManagedFields {
		partial.ManagedFields[i].FieldsV1 = nil
	}
	partial.TypeMeta = metav1.TypeMeta{APIVersion: watch.Resource.GroupVersion().String()}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(partial)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of %s %s/%s: %w", watch, partial.Namespace, partial.Name, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
