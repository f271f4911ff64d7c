// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/configbutler/slipstream/artifacts/audit"
)

func TestAuditLogIsWrittenByDefault(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"in the data directory":     {[]string{"--data-dir=/data"}, "/data/audit/audit.log"},
		"elsewhere":                 {[]string{"--data-dir=/data", "--audit-log-path=/log"}, "/log"},
		"with etcd":                 {[]string{"--storage-backend=etcd3"}, "-"},
		"with a policy of the user": {[]string{"--audit-policy-file=/policy"}, ""},
	} {
		opts := parse(t, test.arguments...)
		if err := opts.Complete(); err != nil {
			t.Fatal(err)
		}
		if got := opts.Recommended.Audit.LogOptions.Path; got != test.want {
			t.Errorf("%s: it is written to %q, want %q", name, got, test.want)
		}
	}
}

func TestShippedAuditPolicy(t *testing.T) {
	read, err := policy.LoadPolicyFromBytes(audit.Policy)
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(read)
	for _, test := range []struct {
		user, verb, resource, subresource string
		want                              auditinternal.Level
	}{
		{"jane", "get", "environments", "secretdiff", auditinternal.LevelMetadata},
		{"system:apiserver", "get", "environments", "secretdiff", auditinternal.LevelMetadata},
		{"jane", "get", "gitdestinations", "objects", auditinternal.LevelMetadata},
		{"jane", "get", "environments", "diff", auditinternal.LevelNone},
		{"jane", "watch", "syncstatuses", "", auditinternal.LevelNone},
		{"jane", "create", "environments", "sync", auditinternal.LevelRequest},
		{"jane", "create", "syncstatuses", "retry", auditinternal.LevelRequest},
		{"jane", "update", "environments", "", auditinternal.LevelMetadata},
		{"jane", "deletecollection", "syncstatuses", "", auditinternal.LevelMetadata},
		{"system:apiserver", "update", "environments", "status", auditinternal.LevelNone},
	} {
		got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: test.user}, Verb: test.verb, APIGroup: "configbutler.ai", Resource: test.resource,
			Subresource: test.subresource, ResourceRequest: true,
		})
		if got.Level != test.want {
			t.Errorf("%s of %s/%s by %s is logged at level %s, want %s", test.verb, test.resource, test.subresource, test.user, got.Level, test.want)
		}
	}
}
