// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// denial matches the message of an authorizer about a request.
var denial = regexp.MustCompile(
	`User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)?`)

// forbidden returns which permission is missing, which role of the chart has it, and how an administrator grants it. It returns nothing if
// the message does not say that.
func forbidden(message string) string {
	found := denial.FindStringSubmatch(message)
	if found == nil || printable.Line(found[0]) != found[0] {
		return "" // The server's own refusals name the missing permission.
	}
	user, verb, resource, group, namespace := found[1], found[2], found[3], found[4], found[5]
	where := "in the whole cluster"
	if namespace != "" {
		where = "in the namespace " + namespace
	}
	missing := fmt.Sprintf("You (%s) lack the permission to %s %s %s.", user, verb, resource, where)
	role := RoleWith(verb, resource)
	if group != v1alpha1.GroupName || role == "" {
		return missing
	}
	return fmt.Sprintf("%s The ClusterRole %s has it. An administrator grants it with:\n  %s", missing, role, grant(role, user, namespace))
}

// grant returns the command that binds a role to a user, in the whole cluster without a namespace.
func grant(role, user, namespace string) string {
	binding := strings.NewReplacer("/", "-", "%", "-", ":", "-", "@", "-", " ", "-").Replace(role + "-" + user)
	subject := "--user=" + user
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		subject = "--serviceaccount=" + account
	}
	if namespace == "" {
		return fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s %s", Quoted(binding), role, Quoted(subject))
	}
	return fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s %s", Quoted(binding), Quoted(namespace), role, Quoted(subject))
}

// plainWord matches what a shell does not interpret.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// Quoted returns a word of a printed command, so that a shell interprets nothing in it.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
