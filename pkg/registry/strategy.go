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

// strategy holds what the rules of change of all endpoints share.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	resource resource
}

func newStrategy(typer runtime.ObjectTyper, r resource) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, resource: r}
}

// NamespaceScoped says whether objects live in namespaces.
func (s strategy) NamespaceScoped() bool { return s.resource.namespaced }

// AllowCreateOnUpdate refuses PUT to a name that does not exist. Server-side apply creates all the same.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate lets kubectl replace work with a manifest that carries no resourceVersion.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize changes nothing: objects are stored as they were validated.
func (strategy) Canonicalize(runtime.Object) {}

// Validate judges an object that is to be created.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.resource.validate(obj)
}

// ValidateUpdate judges an object that is to replace old.
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.resource.validateUpdate(obj, old)
}

// WarningsOnCreate has none.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has none.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// objectStrategy rules the main endpoint of a kind that users write: they set the spec, and the status stays as it is but
// for what the kind keeps of edits.
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

// PrepareForCreate starts the generations at 1, without a status.
func (s objectStrategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.resource.clearStatus(obj)
	setGeneration(obj, 1)
	s.noteEdit(ctx, obj, nil)
	s.resource.derive(obj)
}

// PrepareForUpdate keeps the status and counts the generations of the spec.
func (s objectStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.resource.keepStatus(obj, old)
	setGeneration(obj, generationOf(old))
	if s.resource.specChanged(obj, old) {
		setGeneration(obj, generationOf(old)+1)
		s.noteEdit(ctx, obj, old)
	}
	s.resource.derive(obj)
}

// GetResetFields tells server-side apply that nobody owns the status through this endpoint.
func (objectStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(fieldpath.MakePathOrDie("status"))
}

// statusStrategy rules the ways to the status: the status changes and everything else stays as it is.
type statusStrategy struct{ strategy }

var (
	_ rest.RESTUpdateStrategy  = statusStrategy{}
	_ rest.ResetFieldsStrategy = statusStrategy{}
)

// PrepareForUpdate takes back every change outside the status.
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

// ValidateUpdate judges the status and leaves the spec alone, which was judged when it was stored.
func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.resource.validateStatusUpdate(obj, old)
}

// GetResetFields tells server-side apply that only the status has owners through this endpoint.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetFields(
		fieldpath.MakePathOrDie("spec"),
		fieldpath.MakePathOrDie("metadata", "labels"),
		fieldpath.MakePathOrDie("metadata", "annotations"),
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
}

// statusEndpointStrategy rules the status subresource, where the server's controllers write what they have read a while ago.
type statusEndpointStrategy struct{ statusStrategy }

// ValidateUpdate judges the status, and that it takes back nothing of what requests have written meanwhile.
func (s statusEndpointStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return append(s.statusStrategy.ValidateUpdate(ctx, obj, old), s.resource.validateStatusRequest(obj, old)...)
}

// recordStrategy rules a kind that only the server writes: everything in it is status, and nothing is taken back.
type recordStrategy struct{ strategy }

var (
	_ rest.RESTCreateStrategy = recordStrategy{}
	_ rest.RESTUpdateStrategy = recordStrategy{}
	_ rest.RESTDeleteStrategy = recordStrategy{}
)

// PrepareForCreate changes nothing.
func (recordStrategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing.
func (recordStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// resetFields names the same paths for the one version that is served.
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
