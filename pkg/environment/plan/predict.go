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

// predict returns what becomes of a live object by server-side apply, after the patch that takes something out, if there is
// one. The errors do not say what the field manager says: it quotes values, which may be secret.
func predict(
	ctx context.Context, schemas *diff.Schemas, live, apply *unstructured.Unstructured, removal []byte,
) (*unstructured.Unstructured, error) {
	both, err := schemas.Typed(ctx, live, apply)
	if err != nil {
		return nil, err
	}
	gvk := live.GroupVersionKind()
	as := shape{typed.ParseableType{TypeRef: both[0].TypeRef(), Schema: both[0].Schema()}}
	fields, err := managedfields.NewDefaultFieldManager(as, oneVersion{}, oneVersion{}, oneVersion{}, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("predict what becomes of %s %q: %w", live.GetKind(), live.GetName(), err)
	}
	var before runtime.Object = live.DeepCopy()
	if removal != nil {
		without, err := patched(live, removal)
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

// patched returns an object with a JSON patch laid over it.
func patched(object *unstructured.Unstructured, text []byte) (*unstructured.Unstructured, error) {
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

// shape makes objects of one type ones that know their fields.
type shape struct{ typed.ParseableType }

var _ managedfields.TypeConverter = shape{}

func (s shape) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("no object of any type")
	}
	return s.FromUnstructured(content.Object, options...)
}

func (s shape) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("no object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// oneVersion takes all versions of a type for one: what managers own is found by its paths, which versions mostly share.
type oneVersion struct{}

var (
	_ runtime.ObjectConvertor = oneVersion{}
	_ runtime.ObjectDefaulter = oneVersion{}
	_ runtime.ObjectCreater   = oneVersion{}
)

func (oneVersion) Convert(_, _, _ any) error { return errors.New("there is one version") }

func (oneVersion) ConvertToVersion(object runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return object, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}
