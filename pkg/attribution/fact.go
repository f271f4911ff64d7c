// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Signal is what told who made a change.
type Signal string

// The signals, the most exact first.
const (
	// Audit is an API server's own record of a request that it has carried out.
	Audit Signal = "audit"
	// Admission is an API server's question whether a request may be carried out.
	Admission Signal = "admission"
	// ManagedFields is the tool that an object says was the last to write it.
	ManagedFields Signal = "managed-fields"
	// Unknown says that nothing told, or that what told contradicts itself.
	Unknown Signal = "unknown"
)

// Actor is a user as an API server knows one. The zero value is nobody.
type Actor struct {
	// Username is the Kubernetes user; that of the impersonated one where there is one.
	Username string `json:"username,omitempty"`
	// Name and Email are what an identity provider says beside it, in the user's extra fields.
	Name   string   `json:"name,omitempty"`
	Email  string   `json:"email,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// ImpersonatedBy is the user behind an impersonated one.
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
}

// Author is who made a change, as far as it is known. The zero value is nobody.
type Author struct {
	Actor
	// Signal is what told; empty means Unknown.
	Signal Signal `json:"signal,omitempty"`
	// Manager is the field manager, with the signal ManagedFields. It is what the client calls itself, and no user.
	Manager string `json:"manager,omitempty"`
	// NamespaceDeletedBy is the user who deleted the namespace that a deleted object was in.
	NamespaceDeletedBy string `json:"namespaceDeletedBy,omitempty"`
}

// Known says whether a user is known.
func (a Author) Known() bool { return a.Username != "" }

// Object names what a fact or an event is about, whatever the version of its type.
type Object struct {
	schema.GroupResource
	Namespace string
	Name      string
}

// Fact is a report of one request that has changed, or wants to change, one object, or a collection of them.
type Fact struct {
	// ID is that of the request and the object. A request that is reported twice by one signal has the same.
	ID string `json:"id"`
	// Signal is Audit or Admission.
	Signal Signal `json:"signal"`
	// Operation is CREATE, UPDATE or DELETE.
	Operation v1alpha1.Operation `json:"operation"`
	Group     string             `json:"group,omitempty"`
	Resource  string             `json:"resource"`
	Namespace string             `json:"namespace,omitempty"`
	// Name is empty where the fact is about a collection.
	Name string `json:"name,omitempty"`
	// UID is the object's; empty where the report does not tell, as audit records at level Metadata do not.
	UID types.UID `json:"uid,omitempty"`

	// After is the resourceVersion that the request has made; empty where the report does not tell.
	After string `json:"after,omitempty"`
	// Before is the resourceVersion of the object that the request is about to change; empty for CREATE, and where the
	// report does not tell.
	Before string `json:"before,omitempty"`
	// Content is the keyed hash of the object's canonical form, as the request will leave it; empty where the report
	// does not tell.
	Content string `json:"content,omitempty"`
	// Replicas is what a request to the subresource scale asks for.
	Replicas *int64 `json:"replicas,omitempty"`
	// Collection is set where the report does not tell the objects that a deletecollection has deleted.
	Collection *Collection `json:"collection,omitempty"`

	// Lasting says of a DELETE that the object may stay for as long as its finalizers or its grace period want.
	Lasting bool `json:"lasting,omitempty"`
	// Begun is when the API server received the request, Ended when it had carried it out (zero for Admission), both by
	// its clock.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"`

	Actor Actor `json:"actor"`
}

// Collection is what a deletecollection selects within the fact's namespace, as the request wrote it.
type Collection struct {
	LabelSelector string `json:"labelSelector,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`
}
