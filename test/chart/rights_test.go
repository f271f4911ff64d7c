// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

const (
	// serverRole is the prefix of the names of the server's roles.
	serverRole = "slipstream-server"
	// everywhere stands for the namespace of a ClusterRoleBinding.
	everywhere = "*"
	// everything are values that grant the server all permissions.
	everything = `
storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}
attribution: {admission: {mode: direct, create: false, segmentSecret: segment}, audit: {clientCASecret: audit}}
watch: {types: any}
catalogs: {namespaces: [shop]}
environments: {sourceNamespaces: [shop], targetNamespaces: [alice], createNamespaces: true}
pipelines: {enabled: true, jobNamespaces: [jobs]}
credentials: {shop: [git]}
`
	// ofEnvironments are the verbs for objects that environments write.
	ofEnvironments = "create,delete,get,list,patch,update"
)

// These are the objects that a compromised server could change. Additions to this list must be documented in
// docs/security.md.
func TestWritePermissionsOfTheServer(t *testing.T) {
	want := map[string][]string{
		"slipstream-server": {
			"create,patch events", "get,update apiservices.apiregistration.k8s.io v1alpha1.configbutler.ai",
			"get,update validatingwebhookconfigurations.admissionregistration.k8s.io slipstream-attribution",
		},
		"slipstream-server-certifies":              {"create secrets", "get,update secrets slipstream-ca"},
		"slipstream-server-storage-encryption":     {"create secrets", "get,update secrets slipstream-encryption"},
		"slipstream-server-encrypts":               {"create secrets", "update secrets slipstream-age-seed"},
		"slipstream-server-environment-namespaces": {"create,delete,patch namespaces"},
		"slipstream-server-environment-targets": {
			"create pods", ofEnvironments + " configmaps,secrets,serviceaccounts,services", ofEnvironments + " cronjobs,jobs.batch",
			ofEnvironments + " daemonsets,deployments,replicasets,statefulsets.apps",
			ofEnvironments + " gateways,grpcroutes,httproutes,referencegrants.gateway.networking.k8s.io",
			ofEnvironments + " horizontalpodautoscalers.autoscaling",
			ofEnvironments + " ingresses,networkpolicies.networking.k8s.io", ofEnvironments + " poddisruptionbudgets.policy",
		},
		"slipstream-server-leads":         {"create,delete,get,update,watch leases.coordination.k8s.io"},
		"slipstream-server-pipeline-jobs": {"create,get configmaps", "create,get,list jobs.batch"},
	}
	readOnly := func(rule rbacv1.PolicyRule) bool { return sets.New("get", "list", "watch").HasAll(rule.Verbs...) }
	if diff := cmp.Diff(want, rulesOfServer(objects(t, everything), readOnly)); diff != "" {
		t.Error(diff)
	}
	// By default, the server cannot write its own webhook.
	want["slipstream-server"] = want["slipstream-server"][:2]
	delete(want, "slipstream-server-storage-encryption")
	if diff := cmp.Diff(want, rulesOfServer(objects(t, "{}"), readOnly)); diff != "" {
		t.Errorf("default values:\n%s", diff)
	}
}

// These rules let the server read Secrets, by name or as part of all types.
func TestSecretsReadableByTheServer(t *testing.T) {
	want := map[string][]string{
		"slipstream-server-certifies":              {"get,update secrets slipstream-ca"},
		"slipstream-server-credentials":            {"get secrets git"},
		"slipstream-server-storage-encryption":     {"get,update secrets slipstream-encryption"},
		"slipstream-server-encrypts":               {"get secrets slipstream-age,slipstream-age-seed", "update secrets slipstream-age-seed"},
		"slipstream-server-environment-namespaces": {"list *.*"},
		"slipstream-server-environment-sources":    {"get,list,watch configmaps,secrets,serviceaccounts,services"},
		"slipstream-server-environment-targets":    {ofEnvironments + " configmaps,secrets,serviceaccounts,services"},
		"slipstream-server-mirrored":               {"list,watch *.*"},
		"slipstream-server-mirrored-secrets":       {"list,watch secrets"},
		"slipstream-server-pipelines":              {"list,watch *.*"},
	}
	others := func(rule rbacv1.PolicyRule) bool {
		reads := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "create" })
		return !reads || !slices.Contains(rule.Resources, "secrets") && !slices.Contains(rule.Resources, rbacv1.ResourceAll)
	}
	if diff := cmp.Diff(want, rulesOfServer(objects(t, everything), others)); diff != "" {
		t.Error(diff)
	}
	// Neither the preset nor a list without Secrets includes them.
	for _, role := range []string{"slipstream-server-credentials", "slipstream-server-mirrored", "slipstream-server-storage-encryption"} {
		delete(want, role)
	}
	for _, values := range []string{"{}", "{watch: {types: list, list: [{group: apps, resources: [deployments]}]}}"} {
		if diff := cmp.Diff(want, rulesOfServer(objects(t, values), others)); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

// The roles are bound in the namespaces that values set, and to the server only.
func TestBindingsOfTheServer(t *testing.T) {
	always := []string{
		"extension-apiserver-authentication-reader in kube-system", "slipstream-server in *",
		"slipstream-server-certifies in slipstream-system", "slipstream-server-leads in slipstream-system",
		"slipstream-server-mirrored in *", "system:auth-delegator in *",
	}
	const noSecrets = "watch: {secrets: false}, "
	for values, more := range map[string][]string{
		"":        {"slipstream-server-encrypts in slipstream-system", "slipstream-server-mirrored-secrets in *"},
		noSecrets: nil,
		noSecrets + "catalogs: {namespaces: [shop]}": {"slipstream-server-catalogs in shop"},
		noSecrets + "environments: {sourceNamespaces: [shop], targetNamespaces: [alice, bob]}": {
			"slipstream-server-catalogs in shop", "slipstream-server-environment-sources in shop",
			"slipstream-server-environment-targets in alice", "slipstream-server-environment-targets in bob",
			"slipstream-server-environment-readiness in *",
		},
		noSecrets + "environments: {targetNamespaces: [alice], createNamespaces: true}": {
			"slipstream-server-environment-namespaces in *", "slipstream-server-environment-targets in *",
			"slipstream-server-environment-readiness in *",
		},
		noSecrets + "pipelines: {jobNamespaces: [jobs]}":         {"slipstream-server-pipeline-jobs in jobs"},
		noSecrets + "pipelines: {enabled: true}":                 {"slipstream-server-pipelines in *"},
		noSecrets + `credentials: {shop: [git], "*": [all]}`:     {"slipstream-server-credentials in shop", "slipstream-server-credentials in *"},
		noSecrets + "attribution: {audit: {clientCASecret: ca}}": {"slipstream-audit in * to User kube-apiserver-audit"},
		noSecrets + "metrics: {readers: [{namespace: m, name: prometheus}]}": {
			"slipstream-metrics in * to ServiceAccount m prometheus",
		},
	} {
		want := slices.Sorted(slices.Values(slices.Concat(always, more)))
		if diff := cmp.Diff(want, bound(objects(t, "{"+values+"}"))); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
	if got := bound(objects(t, "{rbac: {create: false}}")); len(got) > 0 {
		t.Errorf("bindings without roles: %v", got)
	}
}

// The roles of other programs allow one path each.
func TestPermissionsOfPrograms(t *testing.T) {
	all := objects(t, "{}")
	for role, want := range map[string]string{"slipstream-audit": "post /audit", "slipstream-metrics": "get /metrics"} {
		if got := rules(find[*rbacv1.ClusterRole](t, all, role).Rules, nil); !slices.Equal(got, []string{want}) {
			t.Errorf("%s allows %q, want %q", role, got, want)
		}
	}
}

// Only Pods that request the server's token get it.
func TestTokenIsNotMounted(t *testing.T) {
	account := find[*corev1.ServiceAccount](t, objects(t, "{}"), "slipstream")
	if mount := account.AutomountServiceAccountToken; mount == nil || *mount {
		t.Error("the token is mounted in every Pod of the account")
	}
}

// The roles are aggregated to the cluster's roles of the same name.
func TestAggregation(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"{}":                         {"slipstream-view": "view", "slipstream-edit": "edit", "slipstream-admin": "admin"},
		"{rbac: {aggregate: false}}": {},
	} {
		got := map[string]string{}
		for _, each := range objects(t, values) {
			role, _ := each.(*rbacv1.ClusterRole)
			if role == nil {
				continue
			}
			for label := range role.Labels {
				if to, found := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); found {
					got[role.Name] += to
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

// The Pod of helm test can read only the objects that it checks.
func TestPermissionsOfTheCheck(t *testing.T) {
	manifest, err := rendering(t, programs.Helm, "{}")
	if err != nil {
		t.Fatal(err)
	}
	all := decode(t, manifest)
	const check = "slipstream-check"
	want := []string{
		"get apiservices.apiregistration.k8s.io v1alpha1.configbutler.ai",
		"get validatingwebhookconfigurations.admissionregistration.k8s.io slipstream-attribution", "list *.configbutler.ai",
	}
	if diff := cmp.Diff(want, rules(find[*rbacv1.ClusterRole](t, all, check).Rules, nil)); diff != "" {
		t.Error(diff)
	}
	want = []string{"get leases.coordination.k8s.io slipstream"}
	if diff := cmp.Diff(want, rules(find[*rbacv1.Role](t, all, check).Rules, nil)); diff != "" {
		t.Error(diff)
	}
	of := func(line string) bool { return !strings.HasPrefix(line, check) }
	to := " to ServiceAccount " + namespace + " " + check
	if diff := cmp.Diff([]string{check + " in *" + to, check + " in " + namespace + to}, slices.DeleteFunc(bound(all), of)); diff != "" {
		t.Error(diff)
	}
}

// rulesOfServer returns the rules of the server's roles as lines, without those for which leftOut returns true.
func rulesOfServer(all []runtime.Object, leftOut func(rbacv1.PolicyRule) bool) map[string][]string {
	found := map[string][]string{}
	for _, each := range all {
		var name string
		var of []rbacv1.PolicyRule
		switch role := each.(type) {
		case *rbacv1.ClusterRole:
			name, of = role.Name, role.Rules
		case *rbacv1.Role:
			name, of = role.Name, role.Rules
		}
		if lines := rules(of, leftOut); strings.HasPrefix(name, serverRole) && len(lines) > 0 {
			found[name] = lines
		}
	}
	return found
}

// rules returns the rules of a role as lines: verbs, resources, and the names of objects if the rule has any.
func rules(of []rbacv1.PolicyRule, leftOut func(rbacv1.PolicyRule) bool) []string {
	var lines []string
	for _, rule := range of {
		if leftOut != nil && leftOut(rule) {
			continue
		}
		words := []string{joined(rule.Verbs)}
		for _, group := range rule.APIGroups {
			words = append(words, strings.TrimSuffix(joined(rule.Resources)+"."+group, "."))
		}
		for _, rest := range [][]string{rule.ResourceNames, rule.NonResourceURLs} {
			if len(rest) > 0 {
				words = append(words, joined(rest))
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	return lines
}

func joined(words []string) string { return strings.Join(slices.Sorted(slices.Values(words)), ",") }

// bound returns the bindings as lines: the role, the namespace, and the subject if it is not the server.
func bound(all []runtime.Object) []string {
	var lines []string
	note := func(role rbacv1.RoleRef, where string, subjects []rbacv1.Subject) {
		for _, each := range subjects {
			line := role.Name + " in " + where
			if each != (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "slipstream"}) {
				line += " to " + strings.Join(strings.Fields(each.Kind+" "+each.Namespace+" "+each.Name), " ")
			}
			lines = append(lines, line)
		}
	}
	for _, each := range all {
		switch binding := each.(type) {
		case *rbacv1.ClusterRoleBinding:
			note(binding.RoleRef, everywhere, binding.Subjects)
		case *rbacv1.RoleBinding:
			note(binding.RoleRef, binding.Namespace, binding.Subjects)
		}
	}
	slices.Sort(lines)
	return lines
}
