// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/merge"
)

func TestShared(t *testing.T) {
	const (
		webAt   = "/containers[name=web]"
		proxyAt = "/containers[name=proxy]"
	)
	tests := map[string]struct {
		edit, intent string
		want         []string
		live, lost   string
	}{
		"what is desired wins": {
			edit: web("image: web:jane"), intent: web("args: [serve, -q]"),
			want: []string{"overwritten " + webAt + "/image [jane]"}, live: "web:1 -q", lost: "web:jane",
		},
		"what is not desired": {
			edit: web("env: [{name: DEBUG, value: x}]"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/env[name=DEBUG] [jane]"}, live: "web:2 DEBUG",
		},
		"what was removed": {edit: proxy("$patch: delete"), want: []string{"overwritten " + proxyAt}, live: "proxy:1 UPSTREAM"},
		"what is wanted, too": {
			edit: web("env: [{name: NEW, value: a}]"), intent: web("env: [{name: NEW, value: b}]"),
			want: []string{"overwritten " + webAt + "/env[name=NEW]/value [jane]"}, live: "NEW",
		},
		"what is to go": {
			edit: web("env: [{name: MODE, value: jane}]"), intent: web("env: [{name: MODE, $patch: delete}]"),
			want: []string{"overwritten " + webAt + "/env[name=MODE]/value [jane]", "remove " + webAt + "/env[name=MODE] [jane]"}, lost: "MODE",
		},
		"a container is to go": {
			edit: proxy("image: proxy:jane, env: [{name: DEBUG, value: x}]"), intent: proxy("$patch: delete"),
			want: []string{
				"overwritten " + proxyAt + "/env[name=DEBUG] [jane]", "overwritten " + proxyAt + "/image [jane]", "remove " + proxyAt + " [jane]",
			},
			lost: "proxy DEBUG",
		},
		"a container is jane's": {
			edit: "{spec: {template: {spec: {containers: [{name: mine, image: mine:1}]}}}}", intent: proxy("$patch: delete"),
			want: []string{"survives /containers[name=mine] [jane]"}, live: "mine:1", lost: "proxy:1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := object(t, deployment)
			s := newServer(t, base)
			if test.edit != "" {
				s.update("jane", patched(t, s.live(), test.edit))
			}
			result, err := merger().Shared(t.Context(), merge.Versions{Base: base, Live: s.live(), Desired: patched(t, base, test.intent)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, said(result)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			s.carryOut(result)
			checkLive(t, s.live(), test.live, test.lost)
		})
	}
}

// TestWithoutABase takes what our manager owns for what was wanted.
func TestWithoutABase(t *testing.T) {
	tests := map[string]struct {
		edit, intent string
		want         []string
		lost         string
	}{
		"nothing":                    {},
		"a change and a removal":     {intent: web("image: web:2, env: [{name: MODE, $patch: delete}]"), lost: "MODE web:1"},
		"an edit that is wanted so":  {edit: web("image: web:2"), intent: web("image: web:2")},
		"an edit of what is desired": {edit: web("image: web:jane"), want: []string{"conflict /containers[name=web]/image [jane]"}},
		"an edit of what is not": {
			edit: web("env: [{name: DEBUG, value: x}]"), want: []string{"survives /containers[name=web]/env[name=DEBUG] [jane]"},
		},
		"a removal is not seen as an edit": {edit: web("env: [{name: MODE, $patch: delete}]")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := object(t, deployment)
			s := newServer(t, base)
			if test.edit != "" {
				s.update("jane", patched(t, s.live(), test.edit))
			}
			result, err := merger().Branch(t.Context(), merge.Versions{Live: s.live(), Desired: patched(t, base, test.intent)}, merge.Resolution{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, said(result)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if result.Apply != nil {
				s.carryOut(result)
				checkLive(t, s.live(), "", test.lost)
			}
		})
	}
}

func TestWithoutALiveObject(t *testing.T) {
	desired := object(t, deployment)
	result, err := merger().Branch(t.Context(), merge.Versions{Desired: desired}, merge.Resolution{})
	if diff := cmp.Diff(merge.Result{Apply: desired}, result); diff != "" || err != nil || result.Apply == desired {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestOthersThanEditors are writers that are no developers.
func TestOthersThanEditors(t *testing.T) {
	base := object(t, deployment)
	branch := func(t *testing.T, live *unstructured.Unstructured, intent string) merge.Result {
		t.Helper()
		result, err := merger().Branch(t.Context(), merge.Versions{Base: base, Live: live, Desired: patched(t, base, intent)}, merge.Resolution{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	t.Run("what a webhook makes of our fields is applied again", func(t *testing.T) {
		live := newServer(t, base).live()
		live = patched(t, live, web("image: mirror/web:1")) // After ownership was taken down.
		result := branch(t, live, web("image: web:2"))
		if lines := said(result); lines != nil || !strings.Contains(textOf(t, result.Apply), "web:2") {
			t.Errorf("%q", lines)
		}
	})
	t.Run("what a webhook makes of a field that both apply is applied again", func(t *testing.T) {
		s := newServer(t, base)
		s.apply("flux", object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: dev, labels: {tier: front}}}"))
		live := patched(t, s.live(), "{metadata: {labels: {tier: mutated}}}")
		if lines := said(branch(t, live, "{metadata: {labels: {tier: back}}}")); lines != nil {
			t.Errorf("%q", lines)
		}
	})
	t.Run("a field without an owner was not changed by a user", func(t *testing.T) {
		live := patched(t, newServer(t, base).live(), web("imagePullPolicy: Always"))
		if lines := said(branch(t, live, web("imagePullPolicy: Never"))); lines != nil {
			t.Errorf("%q", lines)
		}
	})
	t.Run("what the server did not store is no removal", func(t *testing.T) {
		live := patched(t, newServer(t, base).live(), web("args: null"))
		result := branch(t, live, web("image: web:2"))
		if lines := said(result); lines != nil || !strings.Contains(textOf(t, result.Apply), "serve") {
			t.Errorf("%q", lines)
		}
	})
	t.Run("what the server did not store can be added to", func(t *testing.T) {
		live := patched(t, newServer(t, base).live(), proxy("$patch: delete"))
		if lines := said(branch(t, live, proxy("env: [{name: NEW, value: x}]"))); lines != nil {
			t.Errorf("%q", lines)
		}
	})
	t.Run("an autoscaler keeps its replicas", func(t *testing.T) {
		s := newServer(t, base)
		scaled := patched(t, s.live(), "{spec: {replicas: 5}}")
		scaled.Object["status"] = map[string]any{"readyReplicas": int64(5)}
		s.update("kube-controller-manager", scaled)
		want := []string{"survives /spec/replicas [kube-controller-manager]"}
		if diff := cmp.Diff(want, said(branch(t, s.live(), web("image: web:2")))); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
	})
	t.Run("who applies the same fields holds them", func(t *testing.T) {
		s := newServer(t, base)
		s.apply("flux", object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: dev, labels: {tier: front}}}"))
		want := []string{"conflict /metadata/labels/tier [flux]"}
		if diff := cmp.Diff(want, said(branch(t, s.live(), "{metadata: {labels: {tier: null}}}"))); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
	})
}

// TestKeptContainerIsDroppedLater has a container that another applier holds, and that the catalog drops and takes up again.
func TestKeptContainerIsDroppedLater(t *testing.T) {
	base := object(t, deployment)
	s := newServer(t, base)
	s.apply("jane", object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: dev}, "+
		"spec: {template: {spec: {containers: [{name: proxy, image: proxy:1}]}}}}"))
	unwanted := patched(t, base, proxy("$patch: delete"))
	v := merge.Versions{Base: base, Live: s.live(), Desired: unwanted}
	kept, err := merger().Branch(t.Context(), v, merge.Resolution{Keep: paths(t, "/containers[name=proxy]/image")})
	if err != nil {
		t.Fatal(err)
	}
	s.carryOut(kept)
	checkLive(t, s.live(), "proxy:1 UPSTREAM", "")
	v = merge.Versions{Base: unwanted, Live: s.live(), Desired: patched(t, base, proxy("image: proxy:2"))}
	again, err := merger().Branch(t.Context(), v, merge.Resolution{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"conflict /containers[name=proxy]/image [jane]"}, said(again)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// TestPatchesThatRemove has a patch that removed a container before jane added it again.
func TestPatchesThatRemove(t *testing.T) {
	unpatched := object(t, deployment)
	desired := patched(t, unpatched, proxy("$patch: delete"))
	s := newServer(t, desired)
	s.update("jane", patched(t, s.live(), proxy("image: proxy:jane")))
	v := merge.Versions{Base: desired, Live: s.live(), Desired: desired, Unpatched: unpatched}
	result, err := merger().Branch(t.Context(), v, merge.Resolution{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"overwritten /containers[name=proxy] [jane]", "remove /containers[name=proxy] [jane]"}
	if diff := cmp.Diff(want, said(result)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	s.carryOut(result)
	checkLive(t, s.live(), "", "proxy")
}

// TestNothingIsLeftOfAnItem removes a variable of which jane owns the item only, and none of its fields.
func TestNothingIsLeftOfAnItem(t *testing.T) {
	base := object(t, deployment)
	s := newServer(t, base)
	s.update("jane", patched(t, s.live(), web("env: [{name: NEW, value: jane}]")))
	wanted := patched(t, base, web("env: [{name: NEW, value: ours}]"))
	for _, v := range []merge.Versions{{Base: base, Desired: wanted}, {Base: wanted, Desired: base}} {
		v.Live = s.live()
		result, err := merger().Branch(t.Context(), v, merge.Resolution{Take: paths(t, "/containers[name=web]/env")})
		if err != nil {
			t.Fatal(err)
		}
		s.carryOut(result)
	}
	checkLive(t, s.live(), "MODE", "NEW")
}

func textOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTypesWithoutASchema(t *testing.T) {
	const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, color: red, parts: [{name: a}]}}"
	base := object(t, widget)
	live := object(t, strings.NewReplacer("red", "blue", "name: a", "name: jane").Replace(widget))
	live.SetManagedFields(object(t, `{metadata: {managedFields: [
  {manager: slipstream, operation: Apply, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:size": {}}}},
  {manager: jane, operation: Update, apiVersion: example.com/v1, fieldsType: FieldsV1,
    fieldsV1: {"f:spec": {"f:color": {}, "f:parts": {}}}}]}}`).GetManagedFields())
	desired := object(t, strings.NewReplacer("size: 1", "size: 2", "name: a", "name: b").Replace(widget))
	result, err := merger().Branch(t.Context(), merge.Versions{Base: base, Live: live, Desired: desired}, merge.Resolution{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"conflict /spec/parts [jane]"}, said(result)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	result, err = merger().Branch(t.Context(), merge.Versions{Base: base, Live: live, Desired: desired},
		merge.Resolution{Keep: paths(t, "/metadata"), Take: nil})
	if err != nil || len(result.Conflicts) != 1 {
		t.Errorf("a resolution of another field: %q %v", said(result), err)
	}
}

func TestVersionsOfDifferentTypes(t *testing.T) {
	base := object(t, deployment)
	other := object(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}}")
	_, err := merger().Branch(t.Context(), merge.Versions{Base: base, Live: other, Desired: base}, merge.Resolution{})
	if err == nil || !strings.Contains(err.Error(), `merge Deployment "web"`) || !strings.Contains(err.Error(), "Kind=StatefulSet") {
		t.Errorf("%v", err)
	}
}

func TestRemovalPatch(t *testing.T) {
	base := object(t, deployment)
	s := newServer(t, base)
	s.update("jane", patched(t, s.live(), web("env: [{name: LEVEL, value: jane}, {name: MODE, value: jane}]")))
	v := merge.Versions{
		Base: base, Live: s.live(), Desired: patched(t, base, web("env: [{name: LEVEL, $patch: delete}, {name: MODE, $patch: delete}]")),
	}
	result, err := merger().Shared(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := result.RemovalPatch(v.Live)
	const want = `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
		`{"op":"remove","path":"/spec/template/spec/containers/0/env/0"},{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`
	if string(got) != want || err != nil {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
	if _, err := result.RemovalPatch(object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}")); err == nil ||
		!strings.Contains(err.Error(), "/env[name=LEVEL]") {
		t.Errorf("another object: %v", err)
	}
}
