// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what an item is of.
type Kind string

// Kinds of items.
const (
	CustomResourceDefinition Kind = "CustomResourceDefinition"
	Instance                 Kind = "Instance"
)

// Key says which object is meant.
//
// That of a CustomResourceDefinition has its name (certificates.cert-manager.io) and, as ObjectKind, the kind that it defines
// (Certificate): there are consumers that know a definition by nothing else, also when it is gone. The API server lets neither change once
// the definition is established.
type Key struct {
	Kind Kind `json:"kind"`
	// APIVersion is that of an instance, such as apps/v1.
	APIVersion string `json:"apiVersion,omitempty"`
	ObjectKind string `json:"objectKind"`
	// Namespace is empty when the object is in none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Group is the API group of an instance, or the one for which a definition defines a kind.
func (k Key) Group() string {
	if k.Kind == CustomResourceDefinition {
		_, group, _ := strings.Cut(k.Name, ".")
		return group
	}
	return k.groupVersion().Group
}

// groupVersion reads APIVersion, which came from an API server.
func (k Key) groupVersion() schema.GroupVersion {
	group, version, found := strings.Cut(k.APIVersion, "/")
	if !found {
		return schema.GroupVersion{Version: k.APIVersion}
	}
	return schema.GroupVersion{Group: group, Version: version}
}

// String is the key as kind/group/version/object kind/namespace/name. Those of a type are together when they are sorted. API servers
// allow no slash in any of the parts.
func (k Key) String() string {
	gv := k.groupVersion()
	return strings.Join([]string{string(k.Kind), gv.Group, gv.Version, k.ObjectKind, k.Namespace, k.Name}, "/")
}

// ParseKey reads what String wrote.
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
