// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var keys = map[string]Key{
	"Instance//v1/ConfigMap/shop/web":           {Instance, "v1", "ConfigMap", "shop", "web"},
	"Instance//v1/Node//worker-1.example.com":   {Instance, "v1", "Node", "", "worker-1.example.com"},
	"Instance/apps/v1/Deployment/shop/web":      {Instance, "apps/v1", "Deployment", "shop", "web"},
	"Instance/apps/v1/DeploymentConfig/shop/we": {Instance, "apps/v1", "DeploymentConfig", "shop", "we"},
	"Instance/rbac.authorization.k8s.io/v1/ClusterRole//system:node": {
		Instance, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node",
	},
	"CustomResourceDefinition///Certificate//certificates.cert-manager.io": {
		CustomResourceDefinition, "", "Certificate", "", "certificates.cert-manager.io",
	},
}

func TestKeys(t *testing.T) {
	for text, key := range keys {
		if key.String() != text {
			t.Errorf("encoded %#v = %q, want %q", key, key, text)
		}
		if read, err := ParseKey(text); err != nil || read != key {
			t.Errorf("ParseKey(%q) = %#v, %v, want %#v", text, read, err, key)
		}
	}
}

func TestGroups(t *testing.T) {
	for text, key := range keys {
		want := strings.Split(text, "/")[1]
		if key.Kind == CustomResourceDefinition {
			want = "cert-manager.io"
		}
		if got := key.Group(); got != want {
			t.Errorf("group of %s = %q, want %q", text, got, want)
		}
	}
}

// TestKeysOfATypeAreTogether checks that keys of the same type are adjacent in order.
func TestKeysOfATypeAreTogether(t *testing.T) {
	sorted := make([]string, 0, len(keys))
	for text := range keys {
		sorted = append(sorted, text)
	}
	sorted = append(sorted, "Instance/apps/v1/Deployment/zoo/ape", "Instance//v1/ConfigMap/a/b")
	slices.Sort(sorted)
	var types []string
	for _, text := range sorted {
		prefix := strings.Join(strings.Split(text, "/")[:4], "/")
		if len(types) == 0 || types[len(types)-1] != prefix {
			types = append(types, prefix)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(types)))) != len(types) {
		t.Errorf("types are not adjacent: %q", types)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                                 "has 1 parts, must have 6",
		"Instance//v1/ConfigMap/shop":      "has 5 parts, must have 6",
		"Instance//v1/ConfigMap/a/b/c":     "has 7 parts, must have 6",
		"Secret//v1/ConfigMap/shop/web":    `kind "Secret" is not known: must be CustomResourceDefinition or Instance`,
		"Instance//v1/ConfigMap/shop/":     "must have an object kind and a name",
		"Instance//v1//shop/web":           "must have an object kind and a name",
		"CustomResourceDefinition/////x.y": "must have an object kind and a name",
	} {
		if key, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseKey(%q) = %#v, %v, want an error with %s", text, key, err, says)
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, key := range keys {
		gv := key.groupVersion()
		f.Add(key.Kind == Instance, gv.Group, gv.Version, key.ObjectKind, key.Namespace, key.Name)
	}
	f.Fuzz(func(t *testing.T, instance bool, group, version, objectKind, namespace, name string) {
		if strings.Contains(group+version+objectKind+namespace+name, "/") || objectKind == "" || name == "" {
			t.Skip()
		}
		key := Key{CustomResourceDefinition, "", objectKind, "", name}
		if instance {
			key = Key{Instance, schema.GroupVersion{Group: group, Version: version}.String(), objectKind, namespace, name}
		}
		if read, err := ParseKey(key.String()); err != nil || read != key {
			t.Errorf("encoded %#v = %q, decoded = %#v, %v", key, key, read, err)
		}
	})
}
