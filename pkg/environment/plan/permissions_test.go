// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// operator is a workload that reads and writes the cluster as the account operator.
const operator = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  selector: {matchLabels: {app: operator}}
  template: {metadata: {labels: {app: operator}}, spec: {serviceAccountName: operator, containers: [{name: main, image: "operator:1"}]}}
`

// bound returns a binding that has the name of its role.
func bound(t *testing.T, kind, roleKind, role string, subjects ...string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %[2]s}, subjects: [%[4]s]}",
		kind, role, roleKind, strings.Join(subjects, ", ")))
}

func account(namespace, name string) string {
	return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", namespace, name)
}

// notCopied returns the objects that the target lacks, with their ServiceAccounts.
func notCopied(p *plan.Plan) []string {
	lines := []string{}
	for _, o := range p.NotCopied {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", o.Kind, o.Name, o.Reason, strings.Join(o.ServiceAccounts, ","))))
	}
	return lines
}

// TestPermissionsNotCopied checks that exactly the objects that grant permissions to the workloads' ServiceAccounts are
// reported until the target has them.
func TestPermissionsNotCopied(t *testing.T) {
	const ours = "{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}"
	s := newFixture(t, object(t, operator), object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}"),
		bound(t, "RoleBinding", "Role", "operator", account("production", "operator"), account("production", "other"), ours),
		bound(t, "RoleBinding", "ClusterRole", "view", "{kind: Group, name: 'system:serviceaccounts:production'}"),
		bound(t, "RoleBinding", "Role", "other", account("production", "other"), ours),
		bound(t, "RoleBinding", "Role", "elsewhere", account("elsewhere", "operator")),
		bound(t, "ClusterRoleBinding", "ClusterRole", "nodes", "{kind: User, name: 'system:serviceaccount:production:operator'}"),
		bound(t, "ClusterRoleBinding", "ClusterRole", "admins", ours))
	want := []string{
		"ClusterRoleBinding nodes GrantsRights operator", "Role operator GrantsRights operator",
		"RoleBinding operator GrantsRights operator", "RoleBinding view GrantsRights operator",
	}
	p := s.sync()
	if diff := cmp.Diff(want, notCopied(p)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if len(p.Warnings) != len(want) {
		t.Errorf("warnings = %q", p.Warnings)
	}
	for _, step := range p.Steps {
		if step.Group == plan.Roles.Group {
			t.Errorf("unexpected step: %s", step)
		}
	}

	grant := func(o *unstructured.Unstructured) { s.target.update("jane", o) }
	named := bound(t, "RoleBinding", "Role", "operator", account("shop-alice", "operator"))
	named.SetName("operator-shop-alice-1a2b3c4d")
	grant(named)
	grant(bound(t, "RoleBinding", "ClusterRole", "view", account("shop-alice", "operator")))
	s.add(bound(t, "ClusterRoleBinding", "ClusterRole", "nodes", account("shop-alice", "operator")))
	s.Source[len(s.Source)-1].SetName("nodes-shop-alice")
	if diff := cmp.Diff([]string{"Role operator GrantsRights operator"}, notCopied(s.plan())); diff != "" {
		t.Errorf("with the bindings in the target: want -, got +:\n%s", diff)
	}
	grant(object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator}}"))
	if p := s.plan(); len(p.NotCopied)+len(p.Warnings) > 0 {
		t.Errorf("with all objects in the target: not copied %q, warnings %q", notCopied(p), p.Warnings)
	}
}

// TestUnreadablePermissions checks that nothing is reported as lacking if it could not be read.
func TestUnreadablePermissions(t *testing.T) {
	s := newFixture(t, object(t, operator), object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}"),
		bound(t, "RoleBinding", "Role", "operator", account("production", "operator")))
	s.Unreadable = sets.New(plan.Roles, plan.ClusterRoleBindings)
	want := []string{"ClusterRoleBinding * Unreadable", "Role * Unreadable", "RoleBinding operator GrantsRights operator"}
	if diff := cmp.Diff(want, notCopied(s.plan())); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// TestClaimsNotCopied checks that a workload's claim is reported until the target has it.
func TestClaimsNotCopied(t *testing.T) {
	s := newFixture(t, object(t, strings.Replace(operator, "containers:",
		"volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers:", 1)),
		object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}"))
	if got := notCopied(s.plan()); !slices.Equal(got, []string{"PersistentVolumeClaim data HoldsData"}) {
		t.Errorf("not copied = %q", got)
	}
	s.target.update("jane", object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {volumeName: v}}"))
	if got := notCopied(s.plan()); len(got) > 0 {
		t.Errorf("not copied with the claim in the target = %q", got)
	}
}

func TestBindings(t *testing.T) {
	for subject, want := range map[string]bool{
		account("a", "x"): true, account("c", "x"): false,
		"{kind: User, name: 'system:serviceaccount:b:x'}": true, "{kind: User, name: ann}": false,
		"{kind: Group, name: 'system:serviceaccounts:b'}": true, "{kind: Group, name: 'system:serviceaccounts:c'}": false,
	} {
		if got := plan.Binds(bound(t, "RoleBinding", "Role", "r", subject), "a", "b"); got != want {
			t.Errorf("%s: %v", subject, got)
		}
	}
}
