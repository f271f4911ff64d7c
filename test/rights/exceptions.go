// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/configbutler/slipstream/test/devcluster/rights"

// exception is why rights are there that no request of a test has needed. "*" is any.
type exception struct {
	role, group, resource, verb string
	why                         string
}

const (
	streamed = "lists are watches where kube-apiserver streams them; others are asked for lists"
	applied  = "kube-apiserver asks for it within an apply that makes something, and logs the patch"
	alike    = "no name limits it, so that roles for several Secrets give the same, and kube-apiserver says one of them"
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

// exceptionOf is why a right is there that nobody has needed; empty if there is no reason.
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
