// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// ordinary returns kubectl for a user without permissions, who is not in system:masters.
func (s *testCluster) ordinary(t *testing.T, name string) devcluster.Kubectl {
	t.Helper()
	user, err := s.User(name, "developers")
	if err != nil {
		t.Fatal(err)
	}
	return s.Kubectl(user)
}

// grant grants a user verbs on resources of a namespace, and waits until the permission is effective.
func (s *testCluster) grant(t *testing.T, user, namespace, role, verbs, resources string) {
	t.Helper()
	s.kubectl(t, "create", "role", role, "-n", namespace, "--verb="+verbs, "--resource="+resources)
	s.kubectl(t, "create", "rolebinding", role, "-n", namespace, "--role="+role, "--user="+user)
	verb, _, _ := strings.Cut(verbs, ",")
	first, _, _ := strings.Cut(resources, ",")
	testkit.EventuallyWithin(t, deadline, "the grant to take effect", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, "auth", "can-i", verb, first, "-n", namespace, "--as="+user)
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
}

func testRBAC(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "rbac")
	s.apply(t, repositoryIn(namespace))
	s.apply(t, ruleIn(namespace))
	vera := s.ordinary(t, "vera")
	requests := map[string][]string{
		"get":    {"get", "wr", "rule", "-n", namespace},
		"list":   {"get", "wr", "-n", namespace},
		"watch":  {"get", "wr", "-n", namespace, "--watch-only", "--request-timeout=60s"},
		"patch":  {"label", "wr", "rule", "-n", namespace, "a=b"},
		"update": {"replace", "-n", namespace, "-f", "-"},
		"create": {"create", "-n", namespace, "-f", "-"},
		"delete": {"delete", "wr", "rule", "-n", namespace},
	}
	for verb, request := range requests {
		_, err := vera.Feed(t.Context(), strings.Replace(ruleIn(namespace), "name: rule", "name: hers", 1), request...)
		if err == nil || !strings.Contains(err.Error(), `User "vera" cannot`) {
			t.Errorf("%s without permission: %v, want Forbidden", verb, err)
		}
	}
	s.grant(t, "vera", namespace, "readers", "get,list,watch", "watchrules.configbutler.ai")
	for _, verb := range []string{"get", "list"} {
		testkit.EventuallyWithin(t, deadline, verb, func(ctx context.Context) error {
			_, err := vera.Run(ctx, requests[verb]...)
			return err
		})
	}
	if _, err := vera.Run(t.Context(), requests["delete"]...); err == nil {
		t.Error("reader can delete")
	}
	if _, err := vera.Run(t.Context(), "get", "grc", "-n", namespace); err == nil {
		t.Error("reader of rules can read repositories")
	}
}

func testRulePermissions(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "rights")
	jane := s.ordinary(t, "jane")
	s.grant(t, "jane", namespace, "rules", "get,list,create,update,patch,delete", "watchrules.configbutler.ai,gitrepoconfigs.configbutler.ai")
	s.grant(t, "jane", namespace, "configmaps", "list,watch", "configmaps")
	refusals := []struct{ name, manifest, want string }{
		{
			"Secrets by name", strings.Replace(ruleIn(namespace), "configmaps", "secrets", 1),
			`user "jane" cannot list and watch secrets in the namespace rights`,
		},
		{
			"Secrets by a wildcard", strings.Replace(ruleIn(namespace), "configmaps", `"*"`, 1),
			`user "jane" cannot list and watch * in the namespace rights`,
		},
		{
			"Secrets by the preset", strings.Replace(ruleIn(namespace), ", resources: [configmaps]", "", 1),
			`user "jane" cannot list and watch secrets in the namespace rights`,
		},
		{
			"a type that is not served yet",
			strings.Replace(ruleIn(namespace), `[""], resources: [configmaps]`, `[later.io], resources: [things]`, 1),
			`user "jane" cannot list and watch things.later.io in the namespace rights`,
		},
		{
			"a Secret of a repository", strings.Replace(repositoryIn(namespace), "allowedBranches", "secretRef: {name: creds}, allowedBranches", 1),
			`user "jane" cannot get secrets "creds" in the namespace rights`,
		},
	}
	for _, each := range refusals {
		for _, arguments := range [][]string{
			{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}, {"apply", "--server-side", "-f", "-"},
		} {
			_, err := jane.Feed(t.Context(), each.manifest, arguments...)
			if err == nil || !strings.Contains(err.Error(), each.want) || !strings.Contains(err.Error(), "ask for a Role in the namespace rights") {
				t.Errorf("%s, %v: %v\nwant a refusal with %s", each.name, arguments, err, each.want)
			}
		}
	}
	if _, err := jane.Feed(t.Context(), ruleIn(namespace), "apply", "-f", "-"); err != nil {
		t.Errorf("rule with all permissions: %v", err)
	}
	if _, err := jane.Feed(t.Context(), strings.Replace(ruleIn(namespace), "[configmaps]", "[configmaps, secrets]", 1), "apply",
		"-f", "-"); err == nil {
		t.Error("update with an unreadable type was accepted")
	}
	warned := jane.Command(t.Context(), "label", "wr", "rule", "-n", namespace, "a=b")
	if out, err := warned.CombinedOutput(); err != nil {
		t.Errorf("label a rule: %v: %s", err, out)
	}
	unserved := s.admin.Command(t.Context(), "apply", "--dry-run=server", "-f", "-")
	unserved.Stdin = strings.NewReader(
		strings.Replace(ruleIn(namespace), `[""], resources: [configmaps]`, `[later.io], resources: [things]`, 1))
	out, err := unserved.CombinedOutput()
	if err != nil {
		t.Fatalf("rule for an unknown type: %v: %s", err, out)
	}
	contains(t, string(out), "Warning: spec.rules[0].resources: things: no such resource type; it will be followed when it appears")
}
