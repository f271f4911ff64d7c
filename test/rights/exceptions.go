// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/configbutler/slipstream/test/devcluster/rights"

// exception is the reason for permissions that no request of a test needs. "*" matches any value.
type exception struct {
	role, group, resource, verb string
	why                         string
}

const (
	streamed = "lists are watches if kube-apiserver streams them; other versions need list"
	applied  = "kube-apiserver checks it for an apply that creates an object, and logs the patch"
	alike    = "names do not restrict create, so the roles for several Secrets grant the same, and kube-apiserver logs one of them"
)

var exceptions = []exception{
	{role: "slipstream-server", group: "*", resource: "*", verb: "list", why: streamed},
	{role: "slipstream-server-environment-readiness", group: "*", resource: "*", verb: "list", why: streamed},
	{role: "slipstream-server-environment-targets", group: "*", resource: "*", verb: "create", why: applied},
	{role: "slipstream-server-environment-namespaces", group: "", resource: "namespaces", verb: "create", why: applied},
	{role: "slipstream-server-encrypts", group: "", resource: "secrets", verb: "create", why: alike},
	{role: "slipstream-server-storage-encryption", group: "", resource: "secrets", verb: "create", why: alike},
	{role: "slipstream-server-certifies", group: "", resource: "secrets", verb: "create", why: alike},
}

// exceptionOf returns the reason for an unused permission; empty if it has none.
func exceptionOf(r right) string {
	for _, e := range exceptions {
		if e.covers(r) {
			return e.why
		}
	}
	return ""
}

func (e exception) covers(r right) bool {
	return rights.Allows([]string{e.role}, r.Role) && rights.Allows([]string{e.group}, r.Group) &&
		rights.Allows([]string{e.resource}, r.Resource) && rights.Allows([]string{e.verb}, r.Verb)
}
