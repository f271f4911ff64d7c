// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"io/fs"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/configbutler/slipstream/artifacts/attribution"
)

// request is one that the audit policy is asked about.
type request struct{ verb, group, resource, subresource string }

func TestAuditPolicy(t *testing.T) {
	content, err := fs.ReadFile(attribution.Files, "audit-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := policy.LoadPolicyFromBytes(content)
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(loaded)
	for _, test := range []struct {
		level    auditinternal.Level
		requests []request
	}{
		{auditinternal.LevelRequestResponse, []request{
			{"create", "", "configmaps", ""}, {"update", "", "configmaps", ""}, {"patch", "", "namespaces", ""},
			{"delete", "", "serviceaccounts", ""}, {"patch", "", "nodes", ""}, {"update", "", "namespaces", "finalize"},
			{"deletecollection", "apps", "deployments", ""}, {"update", "apps", "deployments", "scale"},
			{"patch", "apps", "statefulsets", "scale"}, {"create", "batch", "cronjobs", ""},
			{"create", "apiextensions.k8s.io", "customresourcedefinitions", ""}, {"patch", "shop.example.com", "coupons", ""},
			{"update", "shop.example.com", "coupons", "scale"}, {"update", "rbac.authorization.k8s.io", "clusterroles", ""},
		}},
		{auditinternal.LevelMetadata, []request{
			{"create", "", "secrets", ""}, {"update", "", "secrets", ""}, {"patch", "", "secrets", ""},
			{"delete", "", "secrets", ""}, {"deletecollection", "", "secrets", ""},
			{"create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""},
		}},
		{auditinternal.LevelNone, []request{
			{"get", "", "secrets", ""}, {"list", "", "configmaps", ""}, {"watch", "apps", "deployments", ""},
			{"create", "authentication.k8s.io", "tokenreviews", ""}, {"create", "authorization.k8s.io", "subjectaccessreviews", ""},
			{"create", "", "serviceaccounts", "token"}, {"create", "", "pods", "exec"}, {"create", "", "pods", ""},
			{"patch", "", "nodes", "status"}, {"patch", "apps", "deployments", "status"}, {"update", "", "namespaces", "status"},
			{"update", "coordination.k8s.io", "leases", ""}, {"create", "", "events", ""}, {"patch", "events.k8s.io", "events", ""},
			{"update", "", "endpoints", ""}, {"update", "discovery.k8s.io", "endpointslices", ""},
			{"create", "configbutler.ai", "watchrules", ""},
		}},
	} {
		for _, each := range test.requests {
			got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "jane"}, ResourceRequest: true,
				Verb: each.verb, APIGroup: each.group, Resource: each.resource, Subresource: each.subresource,
			})
			if got.Level != test.level {
				t.Errorf("%+v is recorded at level %s, want %s", each, got.Level, test.level)
			}
			if got.Level != auditinternal.LevelNone && !got.OmitManagedFields {
				t.Errorf("%+v is recorded with its managed fields", each)
			}
		}
	}
	got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "post", Path: "/audit"})
	if got.Level != auditinternal.LevelNone {
		t.Errorf("requests for no object are recorded at level %s", got.Level)
	}
}
