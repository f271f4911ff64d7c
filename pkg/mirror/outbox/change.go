// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Object identifies the object of a change.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form of commit subjects: "apps/v1/deployments shop/web", "v1/namespaces shop".
func (o Object) String() string {
	return printable.Line(fmt.Sprintf("%s %s", path.Join(o.Group, o.Version, o.Resource), path.Join(o.Namespace, o.Name)))
}

// GroupVersionResource returns the type of the object.
func (o Object) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
}

// Unstructured returns an object with the name and namespace only.
func (o Object) Unstructured() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	return object
}

// Change is a change of one file of one destination: the content of an outbox row.
type Change struct {
	// Destination is the GitDestination, UID its uid: a destination that is created again inherits nothing.
	Destination types.NamespacedName `json:"destination"`
	UID         types.UID            `json:"-"`
	// Path is the file, relative to the destination's base folder.
	Path string `json:"path"`
	// Content is the whole file; nil, with the operation Delete, removes it. An outbox row stores it after the JSON.
	Content []byte `json:"-"`

	Operation v1alpha1.Operation `json:"operation"`
	Object    Object             `json:"object"`
	// Kind and ObjectUID are those of the object. Both are empty if only its file is known.
	Kind            string    `json:"kind,omitempty"`
	ObjectUID       types.UID `json:"objectUID,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Encryption is the fingerprint of the encryption of the content; empty if it is not encrypted.
	Encryption string `json:"encryption,omitempty"`
	// Seen is when this process saw the change; zero in a row that was read from the store.
	Seen time.Time `json:"-"`
	// Time is when the change was seen, in milliseconds; in Git to the second.
	Time   time.Time          `json:"time"`
	Author attribution.Author `json:"author,omitzero"`
	// Marks are what the object says beside its content.
	Marks Marks `json:"marks,omitzero"`
	// Trace is the trace of the change, if it is sampled. It is stored, so that a restart does not end it.
	Trace Trace `json:"trace,omitzero"`
}

// Trace is where the trace of a change continues when the change leaves the outbox.
type Trace struct {
	// Parent is the W3C traceparent of the span of the change.
	Parent string `json:"parent"`
	// Since is when the change entered the outbox.
	Since time.Time `json:"since"`
}

// Marks are what an object says of its change beside its content.
type Marks struct {
	// Reason is why the object was changed last.
	Reason string `json:"reason,omitempty"`
	// ManagedBy is what manages the object; nil if nothing is known.
	ManagedBy *v1alpha1.ChangeManager `json:"managedBy,omitempty"`
	// Manager is the field manager that last changed the object.
	Manager string `json:"manager,omitempty"`
	// Values are the message authentication codes of the values of a Secret, by their paths.
	Values map[string]string `json:"values,omitempty"`
}
