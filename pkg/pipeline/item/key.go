// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind distinguishes definitions from instances.
type Kind string

// Kinds of items.
const (
	CustomResourceDefinition Kind = "CustomResourceDefinition"
	Instance                 Kind = "Instance"
)

// Key identifies an object.
//
// The key of a CustomResourceDefinition has its name (certificates.cert-manager.io) and, as ObjectKind, the kind that it defines
// (Certificate): some consumers identify a definition by its kind, deletions included. Both are immutable once the definition is
// established.
type Key struct {
	Kind Kind `json:"kind"`
	// APIVersion is the group and version of an instance, such as apps/v1. It is empty for a definition.
	APIVersion string `json:"apiVersion,omitempty"`
	ObjectKind string `json:"objectKind"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Group returns the API group of an instance, or the group of the kind that a definition defines.
func (k Key) Group() string {
	if k.Kind == CustomResourceDefinition {
		_, group, _ := strings.Cut(k.Name, ".")
		return group
	}
	return k.groupVersion().Group
}

// groupVersion parses APIVersion, which is valid because it comes from an API server.
func (k Key) groupVersion() schema.GroupVersion {
	group, version, found := strings.Cut(k.APIVersion, "/")
	if !found {
		return schema.GroupVersion{Version: k.APIVersion}
	}
	return schema.GroupVersion{Group: group, Version: version}
}

// String returns kind/group/version/object kind/namespace/name, so that the keys of a type are adjacent when sorted. No part can contain a
// slash.
func (k Key) String() string {
	gv := k.groupVersion()
	return strings.Join([]string{string(k.Kind), gv.Group, gv.Version, k.ObjectKind, k.Namespace, k.Name}, "/")
}

// ParseKey parses the result of String.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 6 {
		return Key{}, fmt.Errorf("key %q: has %d parts, must have 6", text, len(parts))
	}
	key := Key{Kind: Kind(parts[0]), ObjectKind: parts[3], Namespace: parts[4], Name: parts[5]}
	key.APIVersion = schema.GroupVersion{Group: parts[1], Version: parts[2]}.String()
	switch key.Kind {
	case CustomResourceDefinition, Instance:
	default:
		return Key{}, fmt.Errorf("key %q: kind %q is not known: must be %s or %s", text, key.Kind, CustomResourceDefinition, Instance)
	}
	if key.Name == "" || key.ObjectKind == "" {
		return Key{}, fmt.Errorf("key %q: must have an object kind and a name", text)
	}
	return key, nil
}
