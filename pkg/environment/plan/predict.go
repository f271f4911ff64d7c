// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
)

// predict returns the result of server-side apply on a live object, after the removal patch if there is one. Its errors do
// not wrap those of the field manager, which quote values that may be secret.
func predict(
	ctx context.Context, schemas *diff.Schemas, live, apply *unstructured.Unstructured, removal []byte,
) (*unstructured.Unstructured, error) {
	both, err := schemas.Typed(ctx, live, apply)
	if err != nil {
		return nil, err
	}
	gvk := live.GroupVersionKind()
	as := typeConverter{typed.ParseableType{TypeRef: both[0].TypeRef(), Schema: both[0].Schema()}}
	fields, err := managedfields.NewDefaultFieldManager(as, singleVersion{}, singleVersion{}, singleVersion{}, gvk,
		gvk.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("predict what becomes of %s %q: %w", live.GetKind(), live.GetName(), err)
	}
	var before runtime.Object = live.DeepCopy()
	if removal != nil {
		without, err := applyJSONPatch(live, removal)
		if err != nil {
			return nil, err
		}
		if before, err = fields.Update(before, without, v1alpha1.FieldManager); err != nil {
			return nil, errUnpredictable(live)
		}
	}
	after, err := fields.Apply(before, apply.DeepCopy(), v1alpha1.FieldManager, true)
	if err != nil {
		return nil, errUnpredictable(live)
	}
	out, ok := after.(*unstructured.Unstructured)
	if !ok {
		return nil, errUnpredictable(live)
	}
	out.SetManagedFields(nil)
	return out, nil
}

func errUnpredictable(live *unstructured.Unstructured) error {
	return fmt.Errorf("predict what becomes of %s %q: it is not of the shape of its type, or a list in it has two items of one key",
		live.GetKind(), live.GetName())
}

// applyJSONPatch returns a copy of an object with a JSON patch applied.
func applyJSONPatch(object *unstructured.Unstructured, text []byte) (*unstructured.Unstructured, error) {
	operations, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, errUnpredictable(object)
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return nil, errUnpredictable(object)
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, errUnpredictable(object)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		return nil, errUnpredictable(object)
	}
	return out, nil
}

// typeConverter converts objects of one type.
type typeConverter struct{ typed.ParseableType }

var _ managedfields.TypeConverter = typeConverter{}

func (s typeConverter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("no object of any type")
	}
	return s.FromUnstructured(content.Object, options...)
}

func (s typeConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("no object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// singleVersion treats all versions of a type as equal. Field ownership is tracked by paths, which versions mostly share.
type singleVersion struct{}

var (
	_ runtime.ObjectConvertor = singleVersion{}
	_ runtime.ObjectDefaulter = singleVersion{}
	_ runtime.ObjectCreater   = singleVersion{}
)

func (singleVersion) Convert(_, _, _ any) error { return errors.New("there is one version") }

func (singleVersion) ConvertToVersion(object runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return object, nil
}

func (singleVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (singleVersion) Default(runtime.Object) {}

func (singleVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}
