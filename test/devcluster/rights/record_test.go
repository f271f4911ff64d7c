// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

// event returns the event of a request for a ConfigMap.
func event(user, verb, decision, reason string) auditv1.Event {
	return auditv1.Event{
		Verb: verb, User: authenticationv1.UserInfo{Username: user},
		ObjectRef:   &auditv1.ObjectReference{Resource: "configmaps", Namespace: "shop", Name: "web"},
		Annotations: map[string]string{"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": reason},
	}
}

// by returns RBAC's reason for an allowed request.
func by(binding, role string) string {
	return `RBAC: allowed by ` + binding + ` "bound/shop" of ClusterRole "` + role + `" to ServiceAccount "server/system"`
}

// role returns a role that allows verbs on all objects.
func role(name string, verbs ...string) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: verbs}},
	}
}

func TestRead(t *testing.T) {
	everywhere := []rbacv1.ClusterRole{role("readers", "get", "list"), role("listers", "list")}
	use := func(role, verb string) []rights.Use {
		return []rights.Use{{Role: role, Resource: "configmaps", Verb: verb}}
	}
	for name, test := range map[string]struct {
		events []auditv1.Event
		uses   []rights.Use
		denied []string
	}{
		"OneRole": {
			events: []auditv1.Event{event("server", "get", "allow", by("ClusterRoleBinding", "readers"))}, uses: use("readers", "get"),
		},
		"TwoRoles":    {events: []auditv1.Event{event("server", "list", "allow", by("ClusterRoleBinding", "readers"))}},
		"InNamespace": {events: []auditv1.Event{event("server", "patch", "allow", by("RoleBinding", "editors"))}, uses: use("editors", "patch")},
		"NoRole":      {events: []auditv1.Event{event("server", "get", "allow", "")}},
		"OtherUser":   {events: []auditv1.Event{event("jane", "get", "forbid", ""), event("jane", "get", "allow", by("RoleBinding", "view"))}},
		"Denied":      {events: []auditv1.Event{event("server", "get", "forbid", "")}, denied: []string{"get configmaps shop web"}},
		"AllowedLater": {
			events: []auditv1.Event{event("server", "get", "forbid", ""), event("server", "get", "allow", by("RoleBinding", "view"))},
			uses:   use("view", "get"),
		},
		"denied later": {
			events: []auditv1.Event{event("server", "get", "allow", by("RoleBinding", "view")), event("server", "get", "forbid", "")},
			uses:   use("view", "get"), denied: []string{"get configmaps shop web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := rights.Read(writeLog(t, test.events), "server", everywhere)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(record.Uses, test.uses) || !slices.Equal(record.Denied, test.denied) {
				t.Errorf("got %+v, want uses %+v and denied %q", record, test.uses, test.denied)
			}
		})
	}
}

// writeLog writes an audit log whose last line is incomplete, and returns its path.
func writeLog(t *testing.T, events []auditv1.Event) string {
	t.Helper()
	var log strings.Builder
	for _, each := range events {
		line, err := json.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(append(line, '\n'))
	}
	log.WriteString(`{"verb":"get","us`)
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	for _, program := range []string{"one", "two", "two"} {
		if err := (&rights.Record{Program: program, Denied: []string{"get secrets"}}).Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	records, err := rights.Load(folder)
	if err != nil || len(records) != 3 || records[0].Program != "one" || records[2].Denied[0] != "get secrets" {
		t.Errorf("got %+v, %v", records, err)
	}
}
