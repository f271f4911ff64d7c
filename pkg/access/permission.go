// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission is to do something with objects of some types.
type Permission struct {
	Verbs []string
	// Namespace is empty for the whole cluster.
	Namespace string
	// Resources are types of one API group.
	Group     string
	Resources []string
	// Name is empty for all objects of the types.
	Name string
	// Cause says in a clause what the permission is for.
	Cause string
	// Remedy is what can be done without the permission.
	Remedy string
}

// onBehalf is the cause of what the server does for whoever wrote the object.
const onBehalf = "which the server would do on their behalf"

// String reads like "list and watch secrets in the namespace shop".
func (p Permission) String() string {
	text := enumerated(p.Verbs) + " " + p.subject()
	if p.Namespace == "" {
		return text + " in the whole cluster"
	}
	return text + " in the namespace " + p.Namespace
}

// subject names the types as RBAC does, and the object.
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

// Refusal says to a user who does not have the permission what is missing and what to do about it.
func (p Permission) Refusal(user string) error {
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

// kindOfRole is what grants the permission.
func (p Permission) kindOfRole() string {
	if p.Namespace == "" {
		return "ClusterRole"
	}
	return "Role in the namespace " + p.Namespace
}

// enumerated reads like "create, patch and delete".
func enumerated(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
