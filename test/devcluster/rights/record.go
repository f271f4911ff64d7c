// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights records which of its rights a user of a cluster has used, and which it lacked, from the cluster's
// audit log.
package rights

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// maxLine is the maximum size of a line of an audit log, in bytes.
const maxLine = 16 << 20

// Annotations of audit events for the authorization of the request.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
	allowed, forbidden = "allow", "forbid"
)

// Record is the summary of the requests of a user in one cluster.
type Record struct {
	// Program is the program that started the cluster.
	Program string `json:"program"`
	// Denials is the reason why requests may have been denied; empty if none may.
	Denials string `json:"denials,omitempty"`
	Uses    []Use  `json:"uses"`
	// Denied are the requests that were denied and never allowed later.
	Denied []string `json:"denied,omitempty"`
}

// Use is a kind of request that a role allowed, but no other role that the user has in the whole cluster.
type Use struct {
	Role     string `json:"role"`
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
}

// reason matches RBAC's reason for an allowed request.
var reason = regexp.MustCompile(`^RBAC: allowed by (ClusterRoleBinding|RoleBinding) "[^"]+" of (?:ClusterRole|Role) "([^"]+)"`)

// Read returns the record of the requests of a user from an audit log. The roles are those that the user has in the whole cluster.
func Read(path, user string, everywhere []rbacv1.ClusterRole) (*Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("failed to open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	uses, denied := map[Use]bool{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // The API server was killed while it wrote the last line.
		}
		if event.User.Username != user {
			continue
		}
		switch event.Annotations[decisionAnnotation] {
		case forbidden:
			denied[describe(&event)] = true
		case allowed:
			delete(denied, describe(&event)) // The right was granted later.
			if use, only := useOf(&event, everywhere); only {
				uses[use] = true
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("failed to read the audit log: %w", err)
	}
	return &Record{Uses: slices.SortedFunc(maps.Keys(uses), compare), Denied: slices.Sorted(maps.Keys(denied))}, nil
}

func compare(a, b Use) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
}

// describe describes a request without the details that differ between similar requests.
func describe(event *auditv1.Event) string {
	object := event.ObjectRef
	if object == nil {
		return event.Verb + " " + event.RequestURI
	}
	resource := resourceOf(object)
	if object.APIGroup != "" {
		resource += " of " + object.APIGroup
	}
	return strings.Join(slices.DeleteFunc([]string{event.Verb, resource, object.Namespace, object.Name},
		func(word string) bool { return word == "" }), " ")
}

func resourceOf(object *auditv1.ObjectReference) string {
	if object.Subresource == "" {
		return object.Resource
	}
	return object.Resource + "/" + object.Subresource
}

// useOf returns the use of a role by a request, and whether the request would have been denied without that role. RBAC
// checks roles of the whole cluster first, in any order.
func useOf(event *auditv1.Event, everywhere []rbacv1.ClusterRole) (use Use, only bool) {
	match := reason.FindStringSubmatch(event.Annotations[reasonAnnotation])
	if match == nil || event.ObjectRef == nil {
		return Use{}, false
	}
	use = Use{Role: match[2], Group: event.ObjectRef.APIGroup, Resource: resourceOf(event.ObjectRef), Verb: event.Verb}
	if match[1] == "RoleBinding" {
		return use, true
	}
	for _, role := range everywhere {
		if role.Name != use.Role && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return covers(&rule, &use) }) {
			return use, false
		}
	}
	return use, true
}

// covers reports whether a rule without resource names allows a use.
func covers(rule *rbacv1.PolicyRule, use *Use) bool {
	return len(rule.ResourceNames) == 0 && Allows(rule.APIGroups, use.Group) && Allows(rule.Resources, use.Resource) &&
		Allows(rule.Verbs, use.Verb)
}

// Allows reports whether a list of a rule contains a word.
func Allows(list []string, word string) bool {
	return slices.Contains(list, rbacv1.ResourceAll) || slices.Contains(list, word)
}

// Write writes the record into a folder.
func (r *Record) Write(folder string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("failed to encode the record of rights: %w", err)
	}
	file, err := os.CreateTemp(folder, r.Program+"-*.json")
	if err != nil {
		return fmt.Errorf("failed to create the record of rights: %w", err)
	}
	if _, err := file.Write(content); err != nil {
		return fmt.Errorf("failed to write the record of rights: %w", err)
	}
	return file.Close()
}

// Load returns the records of a folder.
func Load(folder string) ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("failed to look for records of rights: %w", err)
	}
	records := make([]Record, len(paths))
	for i, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("failed to read a record of rights: %w", err)
		}
		if err := json.Unmarshal(content, &records[i]); err != nil {
			return nil, fmt.Errorf("failed to decode the record of rights %s: %w", path, err)
		}
	}
	return records, nil
}
