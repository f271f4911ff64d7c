// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"reflect"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(converted, &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

var types, deduced = applyconfigurations.NewTypeConverter(scheme.Scheme), managedfields.NewDeducedTypeConverter()

// fieldsOf returns the field manager of an object's type. Schemas of custom resources are deduced.
func fieldsOf(o *unstructured.Unstructured) *managedfields.FieldManager {
	gvk := o.GroupVersionKind()
	if !scheme.Scheme.Recognizes(gvk) {
		return managedfieldstest.NewFakeFieldManager(deduced, gvk)
	}
	return managedfieldstest.NewFakeFieldManager(types, gvk)
}

// namespace stores the objects of a namespace like an API server: with the field manager of the library and in the form in
// which typed objects are stored.
type namespace struct {
	t       testing.TB
	objects map[plan.Key]*unstructured.Unstructured
	version int
	// replaced counts the objects that were deleted and created again.
	replaced int
}

func newNamespace(t testing.TB) *namespace {
	return &namespace{t: t, objects: map[plan.Key]*unstructured.Unstructured{}}
}

func (n *namespace) list() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, o := range n.objects {
		all = append(all, o.DeepCopy())
	}
	return all
}

func (n *namespace) apply(manager string, o *unstructured.Unstructured) {
	n.t.Helper()
	fields := fieldsOf(o)
	after, err := fields.Apply(n.before(o), o.DeepCopy(), manager, true)
	if err != nil {
		n.t.Fatalf("apply %s: %v", plan.KeyOf(o), err)
	}
	n.store(after)
}

func (n *namespace) update(manager string, o *unstructured.Unstructured) {
	n.t.Helper()
	fields := fieldsOf(o)
	after, err := fields.Update(n.before(o), n.stored(o.DeepCopy()), manager)
	if err != nil {
		n.t.Fatalf("update %s: %v", plan.KeyOf(o), err)
	}
	n.store(after)
}

// before returns the object to merge with: the live one, or an empty one.
func (n *namespace) before(o *unstructured.Unstructured) *unstructured.Unstructured {
	if live, ok := n.objects[plan.KeyOf(o)]; ok {
		return live.DeepCopy()
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(o.GroupVersionKind())
	return empty
}

func (n *namespace) store(after runtime.Object) {
	o := n.stored(after.(*unstructured.Unstructured))
	n.version++
	o.SetResourceVersion(strconv.Itoa(n.version))
	o.SetUID("uid")
	n.objects[plan.KeyOf(o)] = o
}

// stored returns an object after a round trip through its type.
func (n *namespace) stored(o *unstructured.Unstructured) *unstructured.Unstructured {
	n.t.Helper()
	if !scheme.Scheme.Recognizes(o.GroupVersionKind()) {
		return o // Custom resources have no Go type.
	}
	into, err := scheme.Scheme.New(o.GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true)
	}
	if err != nil {
		n.t.Fatalf("%s was rejected: %v", plan.KeyOf(o), err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		n.t.Fatal(err)
	}
	withoutEmpty(fields, o.Object)
	delete(fields, "status")
	defaults(fields)
	return &unstructured.Unstructured{Object: fields}
}

// defaults sets the API server's defaults in atomic lists, and the generated fields of a Job.
func defaults(fields map[string]any) {
	if spec, ok := fields["spec"].(map[string]any); ok && fields["kind"] == "Job" {
		spec["selector"] = map[string]any{"matchLabels": map[string]any{controllerUID: "made"}}
		_ = unstructured.SetNestedField(spec, "made", "template", "metadata", "labels", controllerUID)
	}
	claims, _, _ := unstructured.NestedSlice(fields, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		claim.(map[string]any)["status"] = map[string]any{"phase": "Pending"}
	}
	if claims != nil {
		fields["spec"].(map[string]any)["volumeClaimTemplates"] = claims
	}
}

// controllerUID is the label that the API server generates for the Pods of a Job.
const controllerUID = "batch.kubernetes.io/controller-uid"

func withoutEmpty(fields, written map[string]any) {
	for name, value := range fields {
		inner, isMap := value.(map[string]any)
		was, had := written[name].(map[string]any)
		switch {
		case value == nil || value == "" && written[name] == nil || isMap && len(inner) == 0 && !had:
			delete(fields, name)
		case isMap:
			withoutEmpty(inner, was)
			if len(inner) == 0 && !had {
				delete(fields, name)
			}
		default:
			withoutEmptyItems(value, written[name])
		}
	}
}

func withoutEmptyItems(value, written any) {
	items, _ := value.([]any)
	were, _ := written.([]any)
	for i, item := range items {
		if inner, ok := item.(map[string]any); ok {
			var was map[string]any
			if i < len(were) {
				was, _ = were[i].(map[string]any)
			}
			withoutEmpty(inner, was)
		}
	}
}

// carryOut executes a step.
func (n *namespace) carryOut(s plan.Step) {
	n.t.Helper()
	switch s.Verb {
	case plan.Delete:
		delete(n.objects, s.Key)
	case plan.Create, plan.Update:
		if n.isRefused(s) {
			delete(n.objects, s.Key)
			n.replaced++
		}
		if s.Removal != nil {
			n.update(v1alpha1.FieldManager, jsonPatched(n.t, n.objects[s.Key], s.Removal))
		}
		n.apply(v1alpha1.FieldManager, s.Apply)
	}
}

// isRefused reports whether an API server rejects an update and requires a replacement.
func (n *namespace) isRefused(s plan.Step) bool {
	if s.Kind == "Job" && s.Live != nil {
		is, _, _ := unstructured.NestedMap(s.Live.Object, "spec", "template", "spec")
		becomes, _, _ := unstructured.NestedMap(s.After.Object, "spec", "template", "spec")
		return !reflect.DeepEqual(is, becomes)
	}
	immutable, _, _ := unstructured.NestedBool(n.before(s.Apply).Object, "immutable")
	return immutable && (!reflect.DeepEqual(s.Live.Object["data"], s.Apply.Object["data"]) || s.Apply.Object["immutable"] != true)
}

func jsonPatched(t testing.TB, o *unstructured.Unstructured, text []byte) *unstructured.Unstructured {
	t.Helper()
	operations, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	before, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	after, err := operations.Apply(before)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return out
}
