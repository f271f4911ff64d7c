// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"fmt"
	"strings"
)

// need is a permission that the caller must have.
type need struct {
	verbs []string
	// namespace is empty for the whole cluster.
	namespace       string
	group, resource string
	// name is empty for all objects of the type.
	name string
	// cause says in a clause what the permission is for.
	cause string
	// remedy is what the caller can do without the permission.
	remedy string
}

// onBehalf is the cause of what the server does for whoever wrote the object.
const onBehalf = "which the server would do on their behalf"

// String reads like "list and watch secrets in the namespace shop".
func (n need) String() string {
	text := strings.Join(n.verbs, " and ") + " " + n.subject()
	if n.namespace == "" {
		return text + " in the whole cluster"
	}
	return text + " in the namespace " + n.namespace
}

// subject names the type as RBAC does, and the object.
func (n need) subject() string {
	text := n.resource
	if n.group != "" {
		text += "." + n.group
	}
	if n.name != "" {
		text += fmt.Sprintf(" %q", n.name)
	}
	return text
}

// refusal says to a user what is missing and what to do about it.
func (n need) refusal(user string) error {
	return fmt.Errorf(
		"user %q cannot %s, %s: ask for a %s that allows %s on resource %q in API group %q, %s",
		user, n, n.cause, n.kindOfRole(), strings.Join(n.verbs, " and "), n.resource, n.group, n.remedy)
}

// kindOfRole is what grants the permission.
func (n need) kindOfRole() string {
	if n.namespace == "" {
		return "ClusterRole"
	}
	return "Role in the namespace " + n.namespace
}
