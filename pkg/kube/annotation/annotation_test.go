// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package annotation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
)

func TestHoldsConfiguration(t *testing.T) {
	for _, key := range annotationtest.Configurations() {
		if !annotation.HoldsConfiguration(key) {
			t.Errorf("%s is not taken for a copy of the object", key)
		}
	}
	// They direct a tool, or say what is so in a few words.
	for _, key := range slices.Concat(annotationtest.Harmless(), annotationtest.Others(), []string{
		"kapp.k14s.io/identity", "kubectl.kubernetes.io/restartedAt", "deployment.kubernetes.io/revision", "getambassador.io/config",
		"alm-examples", "mongodb.com/v1.architecture", "objectset.rio.cattle.io/id", "dev.okteto.com/deployments", "example.com/last",
	}) {
		if annotation.HoldsConfiguration(key) {
			t.Errorf("%s is taken for a copy of the object", key)
		}
	}
}

func TestReadable(t *testing.T) {
	given, harmless := map[string]string{}, map[string]string{}
	for _, key := range annotationtest.Harmless() {
		given[key], harmless[key] = "x", "x"
	}
	others := map[string]string{}
	for _, key := range annotationtest.Others() {
		given[key] = "x"
		others[key] = "x"
	}
	for key := range harmless {
		others[key] = "x"
	}
	for _, key := range annotationtest.Configurations() {
		given[key] = "x"
	}
	for name, tt := range map[string]struct {
		kind        schema.GroupKind
		given, want map[string]string
	}{
		"a Secret":                    {schema.GroupKind{Kind: "Secret"}, given, harmless},
		"a ConfigMap":                 {schema.GroupKind{Kind: "ConfigMap"}, given, others},
		"another Secret":              {schema.GroupKind{Group: "example.com", Kind: "Secret"}, given, others},
		"none":                        {schema.GroupKind{Kind: "Secret"}, nil, nil},
		"nothing that is harmless":    {schema.GroupKind{Kind: "Secret"}, map[string]string{"example.com/made-up": "x"}, nil},
		"nothing but a configuration": {schema.GroupKind{Kind: "ConfigMap"}, map[string]string{"kapp.k14s.io/original": "x"}, nil},
	} {
		if diff := cmp.Diff(tt.want, annotation.Readable(tt.kind, tt.given)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
