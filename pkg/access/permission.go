// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission is the permission to use verbs on objects of some resources.
type Permission struct {
	Verbs []string
	// Namespace is empty for the whole cluster.
	Namespace string
	// Resources are resources of Group.
	Group     string
	Resources []string
	// Name is the name of the object; empty for all objects.
	Name string
	// Cause is a clause that says why the permission is needed.
	Cause string
	// Remedy says what a user without the permission can do instead.
	Remedy string
}

// onBehalf is the Cause of permissions for what the server does on behalf of the editor of an object.
const onBehalf = "which the server would do on their behalf"

// String returns a text like "list and watch secrets in the namespace shop".
func (p Permission) String() string {
	text := enumerated(p.Verbs) + " " + p.subject()
	if p.Namespace == "" {
		return text + " in the whole cluster"
	}
	return text + " in the namespace " + p.Namespace
}

// subject returns the resources, named as in RBAC, and the name of the object.
func (p Permission) subject() string {
	types := make([]string, len(p.Resources))
	for i, resource := range p.Resources {
		types[i] = schema.GroupResource{Group: p.Group, Resource: resource}.String()
	}
	text := enumerated(types)
	if p.Name != "" {
		text += fmt.Sprintf(" %q", p.Name)
	}
	return text
}

// errAfterGrant is the end of the refusal of a request. The API server caches denied SubjectAccessReviews for 10 seconds, unless a flag
// says otherwise.
var errAfterGrant = errors.New("after a grant, this answer may come for about 10 seconds more")

// Refusal returns the error for a user who lacks permissions, nil if there are none.
func Refusal(user string, missing []Permission) error {
	if len(missing) == 0 {
		return nil
	}
	refusals := make([]error, 0, len(missing)+1)
	for _, p := range missing {
		refusals = append(refusals, p.refusal(user))
	}
	return errors.Join(append(refusals, errAfterGrant)...)
}

// refusal returns the error for a user who lacks the permission. It says what is missing and what to do.
func (p Permission) refusal(user string) error {
	noun, quoted := "resource", make([]string, len(p.Resources))
	for i, resource := range p.Resources {
		quoted[i] = strconv.Quote(resource)
	}
	if len(quoted) > 1 {
		noun = "resources"
	}
	return fmt.Errorf(
		"user %q cannot %s, %s: ask for a %s that allows %s on %s %s in API group %q, %s",
		user, p, p.Cause, p.kindOfRole(), enumerated(p.Verbs), noun, enumerated(quoted), p.Group, p.Remedy)
}

// kindOfRole returns the kind of role that grants the permission, and its namespace.
func (p Permission) kindOfRole() string {
	if p.Namespace == "" {
		return "ClusterRole"
	}
	return "Role in the namespace " + p.Namespace
}

// enumerated returns a text like "create, patch and delete".
func enumerated(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
