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

// Records writes the kinds that the API offers to nobody for writing, for controllers in this process. It uses the
// strategy, the validation and the storage of the API, so that a record reads like any other object.
type Records struct {
	scheme *runtime.Scheme
	// stores by the kind of their records
	stores map[string]*genericregistry.Store
	// admission is asked about new records; nil: nobody is.
	admission admission.MutationInterface
}

// add learns the store of the kind of obj.
func (r *Records) add(obj runtime.Object, store *genericregistry.Store) error {
	kind, err := r.kindOf(obj)
	if err != nil {
		return err
	}
	r.stores[kind.Kind] = store
	return nil
}

// Write stores the content of obj, a record of any version: its labels, annotations, ownerReferences and everything
// outside its metadata. The record is created when it is missing; otherwise it is replaced. Equal content writes nothing.
//
// A uid and a resourceVersion in obj are preconditions, which whoever has read the record and changed it gives as they
// were: if it has been deleted, made anew or changed since, that is a Conflict, and it is to be read again. So nobody
// takes back what a user has said of a record meanwhile. In a namespace that is going a new record is Forbidden, with
// the cause NamespaceTerminating; in one that is gone, NotFound.
func (r *Records) Write(ctx context.Context, obj runtime.Object) error {
	kind, err := r.kindOf(obj)
	if err != nil {
		return err
	}
	store, ok := r.stores[kind.Kind]
	if !ok {
		return fmt.Errorf("%s is not a record", kind.Kind)
	}
	internal, err := r.scheme.ConvertToVersion(obj, configbutler.SchemeGroupVersion)
	if err != nil {
		return fmt.Errorf("converting a %s: %w", kind.Kind, err)
	}
	content, err := meta.Accessor(internal)
	if err != nil {
		return fmt.Errorf("reading the metadata of a %s: %w", kind.Kind, err)
	}
	ctx = genericapirequest.WithNamespace(ctx, content.GetNamespace())
	_, _, err = store.Update(ctx, content.GetName(), replacement{internal, content},
		r.admitter(kind, store), rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
	return err
}

// admitter asks admission about a record that is about to be created.
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

// kindOf is the kind of obj, which must be known to the scheme.
func (r *Records) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	kinds, _, err := r.scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("finding the kind of a record: %w", err)
	}
	return kinds[0], nil
}

// replacement puts the content of a record in the place of what is stored.
type replacement struct {
	obj     runtime.Object
	content metav1.Object
}

var _ rest.UpdatedObjectInfo = replacement{}

// Preconditions are those of Write.
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

// UpdatedObject is the content with the identity and life of what is stored, which is empty for a new record. It may be
// called several times, when others write the record at the same time.
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
