// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"
)

// Permission is to do something with objects of a type.
type Permission struct {
	Verbs []string
	// Namespace is empty for the whole cluster.
	Namespace       string
	Group, Resource string
	// Name is empty for all objects of the type.
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
	text := strings.Join(p.Verbs, " and ") + " " + p.subject()
	if p.Namespace == "" {
		return text + " in the whole cluster"
	}
	return text + " in the namespace " + p.Namespace
}

// subject names the type as RBAC does, and the object.
func (p Permission) subject() string {
	text := p.Resource
	if p.Group != "" {
		text += "." + p.Group
	}
	if p.Name != "" {
		text += fmt.Sprintf(" %q", p.Name)
	}
	return text
}

// Refusal says to a user who does not have the permission what is missing and what to do about it.
func (p Permission) Refusal(user string) error {
	return fmt.Errorf(
		"user %q cannot %s, %s: ask for a %s that allows %s on resource %q in API group %q, %s",
		user, p, p.Cause, p.kindOfRole(), strings.Join(p.Verbs, " and "), p.Resource, p.Group, p.Remedy)
}

// kindOfRole is what grants the permission.
func (p Permission) kindOfRole() string {
	if p.Namespace == "" {
		return "ClusterRole"
	}
	return "Role in the namespace " + p.Namespace
}
