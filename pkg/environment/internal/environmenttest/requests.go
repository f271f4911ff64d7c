// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environmenttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// list returns the objects in order, without their content if only metadata was requested.
func (c *Cluster) list(q *request) any {
	selector, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		o := c.objects[key]
		if !strings.HasPrefix(key, q.resource+"/"+q.namespace+"/") || !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		items = append(items, q.shown(o))
	}
	if q.isAboutMetadata() {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{}, "items": items}
	}
	return map[string]any{"apiVersion": q.version, "kind": "ObjectList", "metadata": map[string]any{}, "items": items}
}

var builtIn, deduced = applyconfigurations.NewTypeConverter(scheme.Scheme), managedfields.NewDeducedTypeConverter()

func fieldsOf(o *unstructured.Unstructured) *managedfields.FieldManager {
	gvk := o.GroupVersionKind()
	if !scheme.Scheme.Recognizes(gvk) {
		return managedfieldstest.NewFakeFieldManager(deduced, gvk)
	}
	return managedfieldstest.NewFakeFieldManager(builtIn, gvk)
}

func conflict(q *request) (int, any) {
	return http.StatusConflict, Status(http.StatusConflict, metav1.StatusReasonConflict, q.key()+" has been modified")
}

// apply merges what is applied, on the conditions that are in it.
func (c *Cluster) apply(q *request, live *unstructured.Unstructured) (int, any) {
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(q.body); err != nil {
		panic(err)
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(applied.GroupVersionKind())
	if live != nil {
		before = live.DeepCopy()
	}
	isOther := live != nil && applied.GetResourceVersion() != "" && applied.GetResourceVersion() != live.GetResourceVersion()
	if isOther || live == nil && applied.GetUID() != "" {
		return conflict(q)
	}
	applied.SetResourceVersion("")
	applied.SetUID("")
	after, err := fieldsOf(applied).Apply(before, applied, q.URL.Query().Get("fieldManager"), true)
	if err != nil {
		panic(err)
	}
	return c.write(q, after)
}

func (c *Cluster) write(q *request, after runtime.Object) (int, any) {
	o := after.(*unstructured.Unstructured).DeepCopy()
	if q.dry {
		return http.StatusOK, o.Object
	}
	return http.StatusOK, c.store(o).DeepCopy().Object
}

// patch carries out a JSON patch. One of whose tests one fails is not.
func (c *Cluster) patch(q *request, live *unstructured.Unstructured) (int, any) {
	operations, err := jsonpatch.DecodePatch(q.body)
	if err != nil {
		panic(err)
	}
	before, err := live.MarshalJSON()
	if err != nil {
		panic(err)
	}
	content, err := operations.Apply(before)
	if err != nil {
		return http.StatusUnprocessableEntity, Status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "a test failed")
	}
	next := &unstructured.Unstructured{}
	if err := next.UnmarshalJSON(content); err != nil {
		panic(err)
	}
	after, err := fieldsOf(live).Update(live.DeepCopy(), next, v1alpha1.FieldManager)
	if err != nil {
		panic(err)
	}
	return c.write(q, after)
}

func (c *Cluster) delete(q *request, live *unstructured.Unstructured) (int, any) {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(q.body, &options); err != nil {
		panic(err)
	}
	if condition := options.Preconditions; condition != nil &&
		(*condition.UID != live.GetUID() || *condition.ResourceVersion != live.GetResourceVersion()) {
		return conflict(q)
	}
	if !q.dry {
		delete(c.objects, q.key())
	}
	return http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}
}
