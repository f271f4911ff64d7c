// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// Records writes records, the kinds that the API offers only for reading and deletion, for controllers in this process.
// It uses the API's strategies, validation and storage.
type Records struct {
	scheme *runtime.Scheme
	// stores are the stores by kind.
	stores map[string]*genericregistry.Store
	// admission admits new records. It is optional.
	admission admission.MutationInterface
}

// add registers the store for the kind of obj.
func (r *Records) add(obj runtime.Object, store *genericregistry.Store) error {
	kind, err := r.kindOf(obj)
	if err != nil {
		return err
	}
	r.stores[kind.Kind] = store
	return nil
}

// Write stores the content of obj, a record of any version: its labels, annotations, ownerReferences and everything
// outside its metadata. It creates the record if it does not exist and replaces it otherwise. Equal content causes no
// write. The returned record is the stored one, in the version of obj.
//
// A uid and a resourceVersion in obj are preconditions. Callers that modify a record they have read must set them: if
// the record was deleted, recreated or changed meanwhile, Write returns a Conflict and the caller reads it again. This
// way no user's request is overwritten. In a terminating namespace, creation is Forbidden with the cause
// NamespaceTerminating; in a deleted one, NotFound.
func (r *Records) Write(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	kind, err := r.kindOf(obj)
	if err != nil {
		return nil, err
	}
	store, ok := r.stores[kind.Kind]
	if !ok {
		return nil, fmt.Errorf("%s is not a record", kind.Kind)
	}
	internal, err := r.scheme.ConvertToVersion(obj, configbutler.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("converting a %s: %w", kind.Kind, err)
	}
	content, err := meta.Accessor(internal)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", kind.Kind, err)
	}
	ctx = genericapirequest.WithNamespace(ctx, content.GetNamespace())
	written, _, err := store.Update(ctx, content.GetName(), replacement{internal, content},
		r.admitter(kind, store), rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return r.convert(written, kind)
}

// convert converts a stored record to the version of a kind. Like a record that a client has read, it has no apiVersion and kind.
func (r *Records) convert(stored runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	record, err := r.scheme.ConvertToVersion(stored, kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting a stored %s: %w", kind.Kind, err)
	}
	record.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return record, nil
}

// admitter runs admission for a record that is about to be created.
func (r *Records) admitter(kind schema.GroupVersionKind, store *genericregistry.Store) rest.ValidateObjectFunc {
	if r.admission == nil {
		return rest.ValidateAllObjectFunc
	}
	resource := store.DefaultQualifiedResource.WithVersion(kind.Version)
	return func(ctx context.Context, obj runtime.Object) error {
		record, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("reading the metadata of a record: %w", err)
		}
		attributes := admission.NewAttributesRecord(obj, nil, kind, record.GetNamespace(), record.GetName(), resource, "",
			admission.Create, &metav1.CreateOptions{}, false, nil)
		return r.admission.Admit(ctx, attributes, admission.NewObjectInterfacesFromScheme(r.scheme))
	}
}

// kindOf returns the kind of obj, which must be registered in the scheme.
func (r *Records) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	kinds, _, err := r.scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("finding the kind of a record: %w", err)
	}
	return kinds[0], nil
}

// replacement replaces the content of a stored record.
type replacement struct {
	obj     runtime.Object
	content metav1.Object
}

var _ rest.UpdatedObjectInfo = replacement{}

// Preconditions implements rest.UpdatedObjectInfo.
func (r replacement) Preconditions() *metav1.Preconditions {
	out := &metav1.Preconditions{}
	if uid := r.content.GetUID(); uid != "" {
		out.UID = &uid
	}
	if version := r.content.GetResourceVersion(); version != "" {
		out.ResourceVersion = &version
	}
	return out
}

// UpdatedObject returns the content with the server-managed metadata of the stored object, which is empty for a new
// record. It may be called several times if there are concurrent writes.
func (r replacement) UpdatedObject(_ context.Context, stored runtime.Object) (runtime.Object, error) {
	updated := r.obj.DeepCopyObject()
	target, err := meta.Accessor(updated)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a record: %w", err)
	}
	source, err := meta.Accessor(stored)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a stored record: %w", err)
	}
	target.SetUID(source.GetUID())
	target.SetResourceVersion(source.GetResourceVersion())
	target.SetGeneration(source.GetGeneration())
	target.SetCreationTimestamp(source.GetCreationTimestamp())
	target.SetDeletionTimestamp(source.GetDeletionTimestamp())
	target.SetDeletionGracePeriodSeconds(source.GetDeletionGracePeriodSeconds())
	target.SetFinalizers(source.GetFinalizers())
	target.SetManagedFields(source.GetManagedFields())
	return updated, nil
}
