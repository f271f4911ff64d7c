// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"path"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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

// Author is who made a change, as far as it is known. The zero value is nobody.
type Author struct {
	// Username is the Kubernetes user; empty when nobody is known.
	Username string `json:"username,omitempty"`
	// Name and Email are what an identity provider says beside it.
	Name   string   `json:"name,omitempty"`
	Email  string   `json:"email,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Signal is what told: audit, admission, managed-fields or unknown (empty).
	Signal string `json:"signal,omitempty"`
	// ImpersonatedBy is the user behind an impersonated one.
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
}

func (a Author) known() bool { return a.Username != "" }

// same says whether a commit can have both authors, so that it says of neither what is true
// of the other only. The groups that a user was in at the time do not count.
func (a Author) same(b Author) bool {
	a.Groups, b.Groups = nil, nil
	return reflect.DeepEqual(a, b)
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
	// Time is when the change was seen, to the second in Git.
	Time   time.Time `json:"time"`
	Author Author    `json:"author,omitzero"`
}
