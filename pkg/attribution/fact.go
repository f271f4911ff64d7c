// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Signal is the source of information about the author of a change.
type Signal string

// The signals, the most exact first.
const (
	// Audit is an API server's audit record of a completed request.
	Audit Signal = "audit"
	// Admission is an API server's review of a request before it is carried out.
	Admission Signal = "admission"
	// ManagedFields is the field manager that last wrote the object according to its metadata.
	ManagedFields Signal = "managed-fields"
	// Unknown means that no signal named the author, or that the signals contradict each other.
	Unknown Signal = "unknown"
)

// Actor is a user as an API server authenticated it. The zero value is no user.
type Actor struct {
	// Username is the Kubernetes user; with impersonation, the impersonated one.
	Username string `json:"username,omitempty"`
	// Name and Email are claims of an identity provider, from the user's extra fields.
	Name   string   `json:"name,omitempty"`
	Email  string   `json:"email,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// ImpersonatedBy is the user who impersonated Username.
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
}

// Author is the author of a change, as far as known. The zero value is an unknown author.
type Author struct {
	Actor
	// Signal is the source of the author; empty means Unknown.
	Signal Signal `json:"signal,omitempty"`
	// Manager is the field manager, with the signal ManagedFields. The client chooses that name; it is not a user.
	Manager string `json:"manager,omitempty"`
	// NamespaceDeletedBy is the user who deleted the namespace of a deleted object.
	NamespaceDeletedBy string `json:"namespaceDeletedBy,omitempty"`
}

// Known reports whether a user is known.
func (a Author) Known() bool { return a.Username != "" }

// Object identifies the object of a fact or an event, regardless of the version of its type.
type Object struct {
	schema.GroupResource
	Namespace string
	Name      string
}

// Fact is a report about one request that changed, or is about to change, one object or a collection.
type Fact struct {
	// ID identifies the request and the object. A request that one signal reports twice has the same ID.
	ID string `json:"id"`
	// Signal is Audit or Admission.
	Signal Signal `json:"signal"`
	// Operation is CREATE, UPDATE or DELETE.
	Operation v1alpha1.Operation `json:"operation"`
	Group     string             `json:"group,omitempty"`
	Resource  string             `json:"resource"`
	Namespace string             `json:"namespace,omitempty"`
	// Name is empty if the fact is about a collection.
	Name string `json:"name,omitempty"`
	// UID is the object's uid; empty if not reported, as in audit records of level Metadata.
	UID types.UID `json:"uid,omitempty"`

	// After is the resourceVersion that the request created; empty if not reported.
	After string `json:"after,omitempty"`
	// Before is the resourceVersion that the request starts from; empty for CREATE and if not reported.
	Before string `json:"before,omitempty"`
	// Content is the keyed hash of the object's canonical form after the request; empty if not reported.
	Content string `json:"content,omitempty"`
	// Replicas is the number of replicas that a request to the scale subresource sets.
	Replicas *int64 `json:"replicas,omitempty"`
	// Collection is set if the report does not list the objects that a deletecollection has deleted.
	Collection *Collection `json:"collection,omitempty"`

	// Lasting is set for a DELETE after which finalizers or a grace period may delay the removal of the object.
	Lasting bool `json:"lasting,omitempty"`
	// Begun is when the API server received the request, Ended when it completed it (zero for Admission), both by its
	// clock.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"`

	Actor Actor `json:"actor"`
}

// Collection has the selectors of a deletecollection within the fact's namespace, as in the request.
type Collection struct {
	LabelSelector string `json:"labelSelector,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`
}
