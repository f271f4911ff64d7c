// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// Object names the object a change is about.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the form of commit subjects: "apps/v1/deployments shop/web", "v1/namespaces shop".
func (o Object) String() string {
	return fmt.Sprintf("%s %s", path.Join(o.Group, o.Version, o.Resource), path.Join(o.Namespace, o.Name))
}

func (o Object) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
}

// unstructured is the object as far as its name tells.
func (o Object) unstructured() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	return object
}

// Change is one change of content on its way to one destination: a row of the outbox.
type Change struct {
	// Destination is the GitDestination, UID the one it had: a destination created anew
	// under an old name inherits nothing.
	Destination types.NamespacedName `json:"destination"`
	UID         types.UID            `json:"-"`
	// Path is the file, relative to the destination's base folder.
	Path string `json:"path"`
	// Content is the whole file; nil, with the operation Delete, removes it. An outbox row
	// has it beside the rest.
	Content []byte `json:"-"`

	Operation       v1alpha1.Operation `json:"operation"`
	Object          Object             `json:"object"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	// Sealing tells how the content is encrypted; empty: it is not.
	Sealing string `json:"sealing,omitempty"`
	// seen is when this process saw the change; zero in a row that was read from the store.
	seen time.Time
	// Time is when the change was seen, to the second in Git.
	Time   time.Time          `json:"time"`
	Author attribution.Author `json:"author,omitzero"`
}
