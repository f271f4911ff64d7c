// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

const manifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: slipstream-server-tested}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}
- {apiGroups: ["*"], resources: ["*"], verbs: [delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: slipstream-view}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
`

// Permissions that no request needs are reported, and so are denied requests without a reason.
func TestJudge(t *testing.T) {
	const role = "slipstream-server-tested"
	given, err := rightsOf(manifest)
	if err != nil {
		t.Fatal(err)
	}
	records := []rights.Record{
		{Program: "first", Uses: []rights.Use{
			{Role: role, Group: "apps", Resource: "deployments", Verb: "list"},
			{Role: role, Group: "batch", Resource: "jobs", Verb: "delete"},
		}, Denied: []string{"get secrets shop git"}},
		{Program: "second", Uses: []rights.Use{{Role: "slipstream-server-other", Group: "apps", Resource: "deployments", Verb: "watch"}},
			Denials: "permissions are revoked", Denied: []string{"list pods"}},
	}
	want := []string{role + `: watch deployments in group "apps": not needed by any request`}
	if got := unused(judge(given, records)); !slices.Equal(got, want) {
		t.Errorf("unused: %q, want %q", got, want)
	}
	want = []string{"first: denied request of the server: get secrets shop git"}
	if got := denied(records); !slices.Equal(got, want) {
		t.Errorf("denied: %q, want %q", got, want)
	}
	var listed strings.Builder
	if err := printDenied(&listed, records); err != nil {
		t.Fatal(err)
	}
	const line = "second   list pods  permissions are revoked\n"
	if got := listed.String(); !strings.HasSuffix(got, line) || strings.Contains(got, "first") {
		t.Errorf("listed: %q, want %q", got, line)
	}
}

// Every exception has a reason and matches a permission of the chart.
func TestExceptions(t *testing.T) {
	var given []right
	for _, path := range manifests {
		content, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		more, err := rightsOf(string(content))
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, more...)
	}
	for _, e := range exceptions {
		if strings.TrimSpace(e.why) == "" || !slices.ContainsFunc(given, e.covers) {
			t.Errorf("exception %+v has no reason, or matches no permission", e)
		}
	}
}
