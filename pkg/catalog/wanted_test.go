// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/source"
)

func TestFactsThatAreKept(t *testing.T) {
	api := attribution.Object{GroupResource: deployments.GroupResource(), Namespace: "production", Name: "api"}
	var w wanted
	if w.has(api) {
		t.Error("wanted before anything is watched")
	}
	w.set([]source.Watch{{Resource: deployments, Namespace: "production"}})
	for name, test := range map[string]struct {
		object attribution.Object
		wanted bool
	}{
		"an object that is watched":  {api, true},
		"all objects of a namespace": {attribution.Object{GroupResource: api.GroupResource, Namespace: "production"}, true},
		"another namespace":          {attribution.Object{GroupResource: api.GroupResource, Namespace: "staging", Name: "api"}, false},
		"another type":               {attribution.Object{GroupResource: schema.GroupResource{Resource: "pods"}, Namespace: "production", Name: "api"}, false},
	} {
		if got := w.has(test.object); got != test.wanted {
			t.Errorf("%s is wanted: %v", name, got)
		}
	}
	w.set(nil)
	if w.has(api) {
		t.Error("wanted when nothing is watched any more")
	}
}
