// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestATargetReceivesObjectsAndChanges(t *testing.T) {
	s := newFixture(t, configMapType, widgetType, definitionType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.server.put(definitions, definition("widgets", "Widget", true))
	s.run()
	deleted := item.Item{Key: item.Key{Kind: item.Instance, APIVersion: "v1", ObjectKind: "ConfigMap", Namespace: "shop", Name: "gone"}}
	to := newTarget(deleted)
	s.set(shop, everything, to)
	to.expect(t, configMap("a"), defined("widgets", "Widget"))

	s.server.put(configMaps, object("shop", "b", "2"))
	s.server.put(widgets, object("shop", "w", "3"))
	to.expect(t, configMap("a"), configMap("b"), widget("w"), defined("widgets", "Widget"))
	s.server.put(configMaps, labelled(object("shop", "a", "1"), "till"))
	testkit.Eventually(t, "the changed label", func() error {
		if it, _ := to.get(configMap("a")); it.Labels["app"] != "till" {
			return fmt.Errorf("stored object = %+v", it)
		}
		return nil
	})
	s.server.remove(configMaps, object("shop", "a", "1"))
	to.expect(t, configMap("b"), widget("w"), defined("widgets", "Widget"))
	s.listed(shop)
	if state := s.observer.State(shop); state.WatchedTypes != 2 || state.Objects != 3 {
		t.Errorf("state = %+v, want 2 types and 3 objects", state)
	}
}

// TestTheMirrorAnnotationIsIgnored checks that neither the annotation nor a deletion in progress hides an object from pipelines.
func TestTheMirrorAnnotationIsIgnored(t *testing.T) {
	s := newFixture(t, configMapType).run()
	unmirrored := object("shop", "a", "1")
	unmirrored.SetAnnotations(map[string]string{"configbutler.ai/mirror": "false"})
	terminating := object("shop", "b", "2")
	now := metav1.Now()
	terminating.SetDeletionTimestamp(&now)
	s.server.put(configMaps, unmirrored)
	to := newTarget()
	s.set(shop, everything, to)
	to.expect(t, configMap("a"))
	s.server.put(configMaps, terminating)
	to.expect(t, configMap("a"), configMap("b"))
}

func TestObjectsOfPipelinesAreNotReported(t *testing.T) {
	s := newFixture(t, configMapType)
	batch := func(name string) *unstructured.Unstructured {
		o := object("shop", name, name)
		o.SetLabels(map[string]string{v1alpha1.LabelPipeline: "any"})
		return o
	}
	s.server.put(configMaps, batch("batch-1"))
	s.run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	s.server.put(configMaps, batch("batch-2"))
	s.server.put(configMaps, object("shop", "a", "1"))
	s.server.remove(configMaps, batch("batch-1"))
	s.server.put(configMaps, object("shop", "b", "2"))
	to.expect(t, configMap("a"), configMap("b"))
	if got := s.observer.State(shop).Objects; got != 2 {
		t.Errorf("%d objects, want 2", got)
	}
	// An object that is labelled later was reported before.
	b := object("shop", "b", "2")
	b.SetLabels(map[string]string{v1alpha1.LabelPipeline: "any"})
	s.server.put(configMaps, b)
	to.expect(t, configMap("a"))
	if news, want := to.takeChanges(), []string{"+" + configMap("a"), "+" + configMap("b"), "-" + configMap("b")}; !slices.Equal(news, want) {
		t.Errorf("changes = %q, want %q", news, want)
	}
}

// TestTheLabelOfAPipelineHidesNothingElse checks that the label does not hide objects of other types.
func TestTheLabelOfAPipelineHidesNothingElse(t *testing.T) {
	s := newFixture(t, widgetType)
	labelled := object("shop", "w", "1")
	labelled.SetLabels(map[string]string{v1alpha1.LabelPipeline: "any"})
	s.server.put(widgets, labelled)
	s.run()
	to := newTarget()
	s.set(shop, instances("widgets"), to)
	s.listed(shop)
	to.expect(t, widget("w"))
}

func TestSelections(t *testing.T) {
	deployments := typeOf(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment")
	otherWidgets := typeOf(schema.GroupVersionResource{Group: "other.io", Version: "v1", Resource: "widgets"}, "Widget")
	oldWidgets := typeOf(newWidgets, "Widget")
	oldWidgets.Preferred = false
	sameKind := typeOf(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "xwidgets"}, "Widget")
	unwatchable := typeOf(schema.GroupVersionResource{Version: "v1", Resource: "bindings"}, "Binding")
	unwatchable.Watchable = false
	s := newFixture(t, configMapType, deployments, widgetType, oldWidgets, otherWidgets, sameKind, unwatchable)
	for _, served := range []watch.Type{configMapType, deployments, widgetType, oldWidgets, otherWidgets, sameKind} {
		s.server.put(served.Resource, object("shop", "x", "1"))
	}
	s.run()
	const apps, other = "Instance/apps/v1/Deployment/shop/x", "Instance/other.io/v1/Widget/shop/x"
	for name, test := range map[string]struct {
		resources, exclude, want []string
	}{
		"all":                      {nil, nil, []string{configMap("x"), apps, widget("x"), other}},
		"a wildcard":               {[]string{"*"}, []string{"widgets", "xwidgets"}, []string{configMap("x"), apps}},
		"a plural in all groups":   {[]string{"widgets"}, nil, []string{widget("x"), other}},
		"a plural of a group":      {[]string{"widgets.other.io", "configmaps"}, nil, []string{configMap("x"), other}},
		"left out, though named":   {[]string{"widgets", "configmaps"}, []string{"widgets.other.io"}, []string{configMap("x"), widget("x")}},
		"nothing that is there":    {[]string{"gadgets"}, nil, nil},
		"types without lists":      {[]string{"bindings"}, nil, nil},
		"nothing that is left out": {[]string{"configmaps"}, []string{"configmaps"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			to := newTarget()
			uid := types.UID(name)
			s.set(uid, observe.Selection{Instances: &observe.InstanceFilter{Resources: test.resources, Exclude: test.exclude}}, to)
			s.listed(uid)
			to.expect(t, test.want...)
		})
	}
}

func TestDefinitionFilters(t *testing.T) {
	s := newFixture(t, definitionType)
	for plural, kind := range map[string]string{"widgets": "Widget", "gadgets": "Gadget", "wheels": "Wheel"} {
		s.server.put(definitions, definition(plural, kind, true))
	}
	s.run()
	gadgets, wheels, widgets := defined("gadgets", "Gadget"), defined("wheels", "Wheel"), defined("widgets", "Widget")
	to := newTarget()
	for _, test := range []struct{ include, exclude, want []string }{
		{nil, nil, []string{gadgets, wheels, widgets}},
		{[]string{"widgets.example.com"}, nil, []string{widgets}},
		{[]string{"w*"}, nil, []string{wheels, widgets}},
		{[]string{"*.com"}, []string{"*dgets.*"}, []string{wheels}},
		{[]string{"*.org"}, nil, nil},
	} {
		s.set(shop, observe.Selection{Definitions: &observe.DefinitionFilter{Include: test.include, Exclude: test.exclude}}, to)
		s.listed(shop)
		to.expect(t, test.want...)
		if got := s.observer.State(shop).Objects; got != int64(len(test.want)) {
			t.Errorf("%d objects, want %d", got, len(test.want))
		}
	}
	s.set(shop, instances("configmaps"), to) // an empty filter would select the definitions, too
	to.expect(t)
}

func TestADefinitionIsReportedOnceEstablishedAndOnChanges(t *testing.T) {
	s := newFixture(t, definitionType).run()
	to := newTarget()
	s.set(shop, observe.Selection{Definitions: &observe.DefinitionFilter{Exclude: []string{"last.example.com"}}}, to)
	s.listed(shop)
	widget := defined("widgets", "Widget")
	marker := 0
	// reported returns the reported changes, once all changes so far were reported.
	reported := func() []string {
		marker++
		last := definition(fmt.Sprintf("marker%d", marker), "Marker", true)
		s.server.put(definitions, last)
		key := defined(fmt.Sprintf("marker%d", marker), "Marker")
		testkit.Eventually(t, "the marker", func() error {
			if _, ok := to.get(key); !ok {
				return errors.New("marker is not reported")
			}
			return nil
		})
		return slices.DeleteFunc(to.takeChanges(), func(news string) bool { return news == "+"+key })
	}
	change := func(change func(*unstructured.Unstructured)) {
		d := definition("widgets", "Widget", true)
		change(d)
		s.server.put(definitions, d)
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"not established", func() { s.server.put(definitions, definition("widgets", "Widget", false)) }, nil},
		{"established", func() { s.server.put(definitions, definition("widgets", "Widget", true)) }, []string{"+" + widget}},
		{"labelled", func() { change(func(d *unstructured.Unstructured) { d.SetLabels(map[string]string{"a": "b"}) }) }, nil},
		{"another certificate", func() {
			change(func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, "new", "spec", "conversion", "webhook", "clientConfig", "caBundle")
			})
		}, nil},
		{"another spec", func() {
			change(func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, "Cluster", "spec", "scope")
			})
		}, []string{"+" + widget}},
		{"recreated", func() {
			s.server.remove(definitions, definition("widgets", "Widget", true))
			change(func(d *unstructured.Unstructured) { d.SetUID("another") })
		}, []string{"-" + widget, "+" + widget}},
		{"gone", func() { s.server.remove(definitions, definition("widgets", "Widget", true)) }, []string{"-" + widget}},
	} {
		if step.do(); !slices.Equal(reported(), step.want) {
			t.Errorf("%s: want %q", step.name, step.want)
		}
	}
}

func TestTypesComeAndGoWithoutARestart(t *testing.T) {
	s := newFixture(t, configMapType, definitionType).run()
	s.server.put(configMaps, object("shop", "a", "1"))
	to := newTarget()
	s.set(shop, everything, to)
	to.expect(t, configMap("a"))

	for i := range 2 {
		s.server.serve(widgets)
		s.server.put(definitions, definition("widgets", "Widget", true))
		s.server.put(widgets, object("shop", "w", fmt.Sprint("first", i)))
		s.discovered(configMapType, definitionType, widgetType)
		to.expect(t, configMap("a"), widget("w"), defined("widgets", "Widget"))
		s.server.put(widgets, object("shop", "v", fmt.Sprint("second", i)))
		to.expect(t, configMap("a"), widget("w"), widget("v"), defined("widgets", "Widget"))

		// The server reports no deletion of instances, as if the watch had ended before.
		s.server.drop(widgets)
		s.server.remove(definitions, definition("widgets", "Widget", true))
		to.expect(t, configMap("a"), widget("w"), widget("v"))
		s.discovered(configMapType, definitionType)
		to.expect(t, configMap("a"))
	}
	s.listed(shop)
}

func TestAnotherPreferredVersionReplacesTheObjectsOfTheOneBefore(t *testing.T) {
	s := newFixture(t, widgetType, newWidgetType)
	s.server.put(widgets, object("shop", "w", "1"))
	s.server.put(newWidgets, object("shop", "w", "1"))
	other := newWidgetType
	other.Preferred = false
	s.discovered(widgetType, other)
	s.run()
	to := newTarget()
	s.set(shop, instances("widgets"), to)
	to.expect(t, widget("w"))
	s.listed(shop)

	before := widgetType
	before.Preferred = false
	s.discovered(before, newWidgetType)
	const newWidget = "Instance/example.com/v2/Widget/shop/w"
	to.expect(t, newWidget)
	if news, want := to.takeChanges(), []string{"+" + widget("w"), "-" + widget("w"), "+" + newWidget}; !slices.Equal(news, want) {
		t.Errorf("changes = %q, want %q", news, want)
	}
	testkit.Eventually(t, "the end of the watch", func() error {
		if _, watches := s.server.counts(widgets); watches > 0 {
			return errors.New("previous version is still watched")
		}
		return nil
	})
}

func TestFailedDiscoveryRemovesNothing(t *testing.T) {
	s := newFixture(t, configMapType, widgetType)
	s.server.put(widgets, object("shop", "w", "1"))
	s.run()
	known := item.Item{Key: item.Key{Kind: item.Instance, APIVersion: "example.com/v1", ObjectKind: "Gadget", Namespace: "shop", Name: "g"}}
	to := newTarget(known)
	failed := map[schema.GroupVersion]string{widgets.GroupVersion(): "unavailable"}
	stale := widgetType
	stale.Stale = true

	// A process that has just started does not know the type; a later one knows that discovery of it fails.
	s.serve(watch.NewSnapshot([]watch.Type{configMapType}, failed))
	s.set(shop, instances("*"), to)
	s.serve(watch.NewSnapshot([]watch.Type{configMapType, stale}, failed))
	to.expect(t, known.String(), widget("w"))
	s.server.refuse(widgets, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no endpoints"))
	s.server.forget()
	s.failing(shop, "widgets.example.com/v1", "no endpoints")
	to.expect(t, known.String(), widget("w"))

	s.server.refuse(widgets, nil)
	s.discovered(configMapType, widgetType)
	to.expect(t, widget("w"))
	s.listed(shop)
}

func TestAFailedListIsReportedAndRetried(t *testing.T) {
	s := newFixture(t, configMapType, secretType).run()
	to := newTarget()
	selection := instances("*")
	selection.Poll = true
	s.set(shop, selection, to)
	s.listed(shop)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.server.put(secrets, object("shop", "s", "2"))
	s.server.refuse(secrets, status(http.StatusForbidden, metav1.StatusReasonForbidden, "secrets is forbidden"))
	if err := s.observer.List(t.Context(), shop, ledger.Resend); err == nil || !strings.Contains(err.Error(), "listing secrets/v1") {
		t.Errorf("List returned %v, want an error of secrets", err)
	}
	to.expect(t, configMap("a"))
	s.failing(shop, "secrets/v1 cannot be listed: secrets is forbidden")
	s.server.refuse(secrets, nil)
	to.expect(t, configMap("a"), "Instance//v1/Secret/shop/s")
	s.listed(shop)
	if got := to.urgency(ledger.Resend); got != 2 {
		t.Errorf("%d objects were reported again, want both", got)
	}
}

func TestATypeThatCannotBeReadDoesNotBlockOthers(t *testing.T) {
	for name, refusal := range map[string]*metav1.Status{
		"forbidden": status(http.StatusForbidden, metav1.StatusReasonForbidden, "secrets is forbidden"),
		"busy":      status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "busy"),
		"broken":    status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "broken"),
	} {
		for mode, poll := range map[string]bool{"watch": false, "poll": true} {
			t.Run(name+", "+mode, func(t *testing.T) {
				s := newFixture(t, configMapType, secretType)
				s.server.put(configMaps, object("shop", "a", "1"))
				s.server.put(secrets, object("shop", "s", "2"))
				s.server.refuse(secrets, refusal)
				s.run()
				key := item.Key{Kind: item.Instance, APIVersion: "v1", ObjectKind: "Secret", Namespace: "shop", Name: "old"}
				to := newTarget(item.Item{Key: key})
				selection := everything
				selection.Definitions, selection.Poll = nil, poll
				s.set(shop, selection, to)
				to.expect(t, configMap("a"), key.String())
				s.failing(shop, "secrets/v1 cannot be", strings.Split(refusal.Message, " ")[0])
				if s.observer.State(shop).Listed {
					t.Error("state is listed although a type cannot be listed")
				}
				to.expect(t, configMap("a"), key.String())
				s.server.refuse(secrets, nil)
				to.expect(t, configMap("a"), "Instance//v1/Secret/shop/s")
				s.listed(shop)
			})
		}
	}
}
