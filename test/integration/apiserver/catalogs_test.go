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

// catalogIn returns a catalog of a Deployment in the namespace source.
func catalogIn(namespace, source string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {namespace: %s, name: shop}
spec: {sourceNamespace: %s, workloads: [{kind: Deployment, name: web}]}
`, namespace, source)
}

const policy = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: 1s}
`

func testCatalogRecords(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "catalog-records")
	for kind, record := range map[string]string{
		"SyncStatus": fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncStatus
metadata: {namespace: %s, name: forged}
spec: {type: Catalog, subject: {kind: AppCatalog, name: shop, uid: "1"}, batch: b1}
status: {state: Applied, actor: other, detectedAt: "2026-01-01T00:00:00Z"}
`, namespace),
		"CatalogWorkload": fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: CatalogWorkload
metadata: {namespace: %s, name: shop.deployment.web}
status: {kind: Deployment, name: web, revision: 1}
`, namespace),
	} {
		for _, way := range [][]string{{"create", "-f", "-"}, {"apply", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
			_, err := s.admin.Feed(t.Context(), record, way...)
			if err == nil || !strings.Contains(err.Error(), "MethodNotAllowed") {
				t.Errorf("%s with kubectl %v: %v, want MethodNotAllowed", kind, way, err)
			}
		}
		if out := s.kubectl(t, "get", kind, "-n", namespace, "-o", "name"); out != "" {
			t.Errorf("objects: %s", out)
		}
	}
}

// testEdits checks the pending edits in the responses, because the server removes them from the status once they are processed.
func testEdits(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "edits")
	const role = "get,list,create,update,patch"
	jane, joe := s.ordinary(t, "jane"), s.ordinary(t, "joe")
	for _, user := range []string{"jane", "joe"} {
		s.grant(t, user, namespace, "catalogs-"+user, role, "appcatalogs.configbutler.ai,appcatalogs.configbutler.ai/status")
		s.grant(t, user, namespace, "source-"+user, "get,list", "deployments.apps,configmaps,services,secrets")
	}
	forged := catalogIn(namespace, namespace) + "status: {pendingEdits: [{generation: 1, actor: other, time: \"2026-01-01T00:00:00Z\"}]}\n"
	last := "jsonpath={.status.pendingEdits[-1:].generation} {.status.pendingEdits[-1:].actor}"
	created, err := jane.Feed(t.Context(), forged, "create", "-f", "-", "-o", last)
	if err != nil {
		t.Fatal(err)
	}
	if created != "1 jane" {
		t.Errorf("newest edit after the creation by jane = %q, want 1 jane", created)
	}
	at := []string{"appcatalog", "shop", "-n", namespace}
	patch := func(kubectl devcluster.Kubectl, change string, more ...string) (string, error) {
		arguments := append(append([]string{"patch"}, at...), "--type=merge", "-p", change, "-o", last)
		return kubectl.Run(t.Context(), append(arguments, more...)...)
	}
	edited, err := patch(joe, `{"spec":{"historyLimit":5}}`)
	if err != nil {
		t.Fatal(err)
	}
	if edited != "2 joe" {
		t.Errorf("newest edit after the change by joe = %q, want 2 joe", edited)
	}
	forgery := `{"status":{"pendingEdits":[{"generation":9,"actor":"jane","time":"2026-01-01T00:00:00Z"}]}}`
	if _, err := patch(joe, forgery, "--subresource=status"); err == nil ||
		!strings.Contains(err.Error(), "a status is written by the server only") {
		t.Errorf("forged edit in the status: %v, want an error", err)
	}
	tried, err := patch(jane, `{"spec":{"historyLimit":6}}`, "--dry-run=server")
	if err != nil {
		t.Fatal(err)
	}
	if tried != "3 jane" {
		t.Errorf("newest edit of a dry run = %q, want 3 jane", tried)
	}
	if got := s.jsonpath(t, "{.metadata.generation} {.spec.historyLimit} {.status.pendingEdits[?(@.generation==3)].actor}",
		at...); got != "2 5 " {
		t.Errorf("generation, limit and edits after a dry run = %q", got)
	}
}

func testCatalogPermissions(t *testing.T, s *testCluster) {
	namespace, source := s.namespace(t, "catalog-rights"), s.namespace(t, "catalog-source")
	carol := s.ordinary(t, "carol")
	s.grant(t, "carol", namespace, "catalogs", "get,list,create,update,patch", "appcatalogs.configbutler.ai")
	manifest := catalogIn(namespace, source)
	const remedySuffix = "or leave the catalog to a user who may read the source"
	needs := []struct{ verb, resource, remedy string }{
		{"list", "deployments.apps", "or leave workloads of kind Deployment out of spec.workloads"},
		{"list", "configmaps", remedySuffix},
		{"list", "services", remedySuffix},
		{"get", "secrets", remedySuffix},
	}
	for _, way := range [][]string{{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
		_, err := carol.Feed(t.Context(), manifest, way...)
		if err == nil {
			t.Fatalf("kubectl %v: catalog of an unreadable source was accepted", way)
		}
		for _, need := range needs {
			contains(t, err.Error(), fmt.Sprintf(`user "carol" cannot %s %s in the namespace %s`, need.verb, need.resource, source),
				"ask for a Role in the namespace "+source, need.remedy)
		}
	}
	for _, need := range needs {
		s.grant(t, "carol", source, need.resource, need.verb, need.resource)
	}
	testkit.EventuallyWithin(t, deadline, "a dry run with all permissions", func(ctx context.Context) error {
		_, err := carol.Feed(ctx, manifest, "create", "--dry-run=server", "-f", "-")
		return err
	})
	if out := s.kubectl(t, "get", "slipstream", "-n", namespace, "-o", "name"); out != "" {
		t.Errorf("objects after refused requests and dry runs: %s", out)
	}
	if _, err := carol.Feed(t.Context(), manifest, "create", "-f", "-"); err != nil {
		t.Errorf("catalog with all permissions: %v", err)
	}
	wider := strings.Replace(manifest, "[{kind: Deployment", "[{kind: CronJob, name: report}, {kind: Deployment", 1)
	if _, err := carol.Feed(t.Context(), wider, "apply", "--server-side", "--force-conflicts", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), `user "carol" cannot list cronjobs.batch in the namespace `+source) {
		t.Errorf("update with an unreadable type: %v", err)
	}
}

// testCatalogApply has several field managers own workloads of a catalog.
func testCatalogApply(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "catalog-ssa")
	s.apply(t, catalogIn(namespace, namespace), "--server-side", "--field-manager=one")
	another := strings.Replace(catalogIn(namespace, namespace), "name: web", "name: worker", 1)
	s.apply(t, another, "--server-side", "--field-manager=two")
	if got := s.jsonpath(t, "{.spec.workloads[*].name}", "cat", "shop", "-n", namespace); got != "web worker" {
		t.Errorf("workloads = %s, want those of both managers", got)
	}
	elsewhere := strings.Replace(another, "sourceNamespace: "+namespace, "sourceNamespace: default", 1)
	_, err := s.admin.Feed(t.Context(), elsewhere, "apply", "-f", "-", "--server-side", "--field-manager=two", "--force-conflicts")
	if err == nil || !strings.Contains(err.Error(), "spec.sourceNamespace: Forbidden: must stay "+namespace) {
		t.Errorf("changed source: %v, want an error about spec.sourceNamespace", err)
	}
	_, err = s.admin.Feed(t.Context(), strings.Replace(policy, "default", "mine", 1), "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "must be default: there is one SyncPolicy") {
		t.Errorf("second policy: %v", err)
	}
}
