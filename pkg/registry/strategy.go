// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// strategy is the common part of all strategies.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	resource resource
}

func newStrategy(typer runtime.ObjectTyper, r resource) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, resource: r}
}

// NamespaceScoped reports whether objects have namespaces.
func (s strategy) NamespaceScoped() bool { return s.resource.namespaced }

// AllowCreateOnUpdate forbids PUT to a name that does not exist. Server-side apply can still create objects.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate allows kubectl replace with a manifest that has no resourceVersion.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize does nothing: objects are stored as they were validated.
func (strategy) Canonicalize(runtime.Object) {}

// Validate validates a new object.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.resource.validate(obj)
}

// ValidateUpdate validates an update.
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.resource.validateUpdate(obj, old)
}

// WarningsOnCreate returns no warnings.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns no warnings.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// objectStrategy is the strategy of the main endpoint of a kind that users write: requests set the spec, and the status
// is unchanged except for recorded edits.
type objectStrategy struct {
	strategy
	clock clock.PassiveClock
}

var (
	_ rest.RESTCreateStrategy  = objectStrategy{}
	_ rest.RESTUpdateStrategy  = objectStrategy{}
	_ rest.RESTDeleteStrategy  = objectStrategy{}
	_ rest.ResetFieldsStrategy = objectStrategy{}
)

// PrepareForCreate clears the status and sets the generation to 1.
func (s objectStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.resource.clearStatus(obj)
	setGeneration(obj, 1)
	s.recordEdit(ctx, obj, nil)
	s.resource.derive(obj)
}

// PrepareForUpdate keeps the status and increments the generation if the spec changes.
func (s objectStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.resource.keepStatus(obj, old)
	setGeneration(obj, generationOf(old))
	if s.resource.specChanged(obj, old) {
		setGeneration(obj, generationOf(old)+1)
		s.recordEdit(ctx, obj, old)
	}
	s.resource.derive(obj)
}

// GetResetFields excludes the status from field ownership at this endpoint.
func (objectStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("status"))
}

// statusStrategy is the strategy of status updates: everything except the status is unchanged.
type statusStrategy struct{ strategy }

var (
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// PrepareForUpdate reverts every change outside the status.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.resource.keepSpec(obj, old)
	updated, err := meta.Accessor(obj)
	if err != nil {
		return // not an API object: validation refuses it
	}
	stored, err := meta.Accessor(old)
	if err != nil {
		return
	}
	updated.SetLabels(stored.GetLabels())
	updated.SetAnnotations(stored.GetAnnotations())
	updated.SetFinalizers(stored.GetFinalizers())
	updated.SetOwnerReferences(stored.GetOwnerReferences())
	s.resource.derive(obj)
}

// ValidateUpdate validates the status. The spec was validated when it was stored.
func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.resource.validateStatusUpdate(obj, old)
}

// GetResetFields excludes everything except the status from field ownership at this endpoint.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
}

// statusEndpointStrategy is the strategy of the status subresource, where controllers write objects that can be
// outdated.
type statusEndpointStrategy struct{ statusStrategy }

// ValidateUpdate also rejects a status that reverts what requests have written meanwhile.
func (s statusEndpointStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return append(s.statusStrategy.ValidateUpdate(ctx, obj, old), s.resource.validateStatusRequest(obj, old)...)
}

// recordStrategy is the strategy of a record: only the server writes it, and everything in it is status.
type recordStrategy struct{ strategy }

var (
	_ rest.RESTCreateStrategy = recordStrategy{}
	_ rest.RESTUpdateStrategy = recordStrategy{}
	_ rest.RESTDeleteStrategy = recordStrategy{}
)

// PrepareForCreate does nothing.
func (recordStrategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate does nothing.
func (recordStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// resetFields returns paths for the one served version.
func resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(paths...),
	}
}

// setGeneration sets metadata.generation of an API object.
func setGeneration(obj runtime.Object, generation int64) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetGeneration(generation)
	}
}

// generationOf reads metadata.generation of an API object.
func generationOf(obj runtime.Object) int64 {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	return accessor.GetGeneration()
}
