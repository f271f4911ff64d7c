// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watched_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

func TestHas(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	api := attribution.Object{GroupResource: deployments.GroupResource(), Namespace: "production", Name: "api"}
	var w watched.Objects
	if w.Has(api) {
		t.Error("object counts as watched before Set")
	}
	w.Set([]watch.Watch{{Resource: deployments, Namespace: "production"}})
	for name, test := range map[string]struct {
		object attribution.Object
		want   bool
	}{
		"a watched object":           {api, true},
		"all objects of a namespace": {attribution.Object{GroupResource: api.GroupResource, Namespace: "production"}, true},
		"another namespace":          {attribution.Object{GroupResource: api.GroupResource, Namespace: "staging", Name: "api"}, false},
		"another type": {
			attribution.Object{GroupResource: schema.GroupResource{Resource: "pods"}, Namespace: "production", Name: "api"}, false,
		},
	} {
		if got := w.Has(test.object); got != test.want {
			t.Errorf("%s: Has = %v", name, got)
		}
	}
	w.Set(nil)
	if w.Has(api) {
		t.Error("object counts as watched after all watches were removed")
	}
}
