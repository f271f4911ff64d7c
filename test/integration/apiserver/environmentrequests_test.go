// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// shopIn returns the workload of the catalog of catalogIn and its dependencies.
func shopIn(namespace, image, level, password string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {namespace: %[1]s, name: settings}
data: {level: %[3]s}
---
apiVersion: v1
kind: Secret
metadata: {namespace: %[1]s, name: database}
stringData: {password: %[4]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: %[2]q, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: database}}]}
`, namespace, image, level, password)
}

// shown reads a subresource of an environment with kubectl.
func shown(ctx context.Context, as devcluster.Kubectl, namespace, subresource string) (string, error) {
	return as.Run(ctx, "get", "--raw", "/apis/configbutler.ai/v1alpha1/namespaces/"+namespace+"/environments/alice/"+subresource)
}

// testEnvironmentRequests checks defaults, validation and dry runs of each request.
func testEnvironmentRequests(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "environment-requests")
	target := namespace + "-alice"
	s.Apply(t, shopIn(namespace, "shop/web:1", "info", "hunter2"))
	s.Apply(t, catalogIn(namespace, namespace))
	s.HasField(t, namespace, "cat/shop", "{.status.revision}", "1")
	s.Apply(t, environmentIn(namespace))
	send := func(subresource, body, query string) string {
		out, err := request(t.Context(), s.admin, namespace, "environments/alice", subresource, body, query)
		return fmt.Sprint(out, err)
	}
	for _, body := range []string{"", "{}", " \n"} {
		out := send("sync", body, "?dryRun=All")
		for _, want := range []string{
			`"accepted":true,"message":"Would sync workloads and what they refer to (dry run)"`, `"kind":"Namespace","name":"` + target + `"`,
			`"kind":"Deployment","namespace":"` + target + `","name":"web","changeType":"Added"`,
		} {
			contains(t, out, want)
		}
	}
	if out, err := s.admin.Run(t.Context(), "get", "namespace", target); err == nil {
		t.Errorf("dry run created %s", out)
	}
	for _, each := range []struct{ subresource, body, want string }{
		{"sync", `{"spec":{"action":"Some"}}`, `spec.action: Unsupported value: "Some"`},
		{"sync", `{"spec":{"workload":[]}}`, `unknown field "spec.workload"`},
		{
			"sync", `{"spec":{"workloads":[{"kind":"Deployment","name":"api"}]}}`,
			`spec.workloads[0]: Unsupported value: "Deployment/api": supported values: "Deployment/web"`,
		},
		{"sync", `{"spec":{"expectedCatalogSync":"shop-older"}}`, "but what AppCatalog shop offers by now is SyncStatus shop-"},
		{"sync", `{"metadata":{"name":"other"}}`, "metadata.name: Invalid value"},
		{"rollback", "", "spec.revision: Required value"},
		{"rollback", `{"spec":{"revision":7}}`, "spec.revision: "},
		{"resolve", "{}", "name fields to keep, fields to take, or both"},
		{"resolve", `{"spec":{"keep":[{"kind":"Deployment","name":"web"}]}}`, "status.conflicts is empty"},
		{"undismiss", "", `"accepted":true,"message":"Nothing was dismissed`},
	} {
		contains(t, send(each.subresource, each.body, "?fieldValidation=Strict"), each.want)
	}
	testEnvironmentSync(t, s, namespace, send)
}

// testEnvironmentSync syncs an environment and reads the diff of later changes.
func testEnvironmentSync(t *testing.T, s *testCluster, namespace string, send func(subresource, body, query string) string) {
	t.Helper()
	synced := func(revision int) {
		contains(t, send("sync", "", ""), `"accepted":true`)
		s.HasField(t, namespace, "envt/alice", "{.status.appliedRevision}", fmt.Sprint(revision))
	}
	synced(1)
	s.Apply(t, shopIn(namespace, "shop/web:2", "debug", "correct-horse"))
	_, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.HasField(t, namespace, "envt/alice", "{.status.latestRevision}", "2")
	diff, err := shown(t.Context(), s.admin, namespace, "diff")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"EnvironmentDiff"`, `"fromRevision":1,"revision":2`, `"before":"\"shop/web:1\"","after":"\"shop/web:2\""`,
		`"before":"\"info\"","after":"\"debug\""`, `"field":"/data/password","changeType":"Changed"`, `"hidden":true`,
	} {
		contains(t, diff, want)
	}
	const before, after = "aHVudGVyMg==", "Y29ycmVjdC1ob3JzZQ=="
	rehearsed := send("sync", "", "?dryRun=All")
	for _, value := range []string{before, after, "hunter2", "correct-horse"} {
		if strings.Contains(diff+rehearsed, value) {
			t.Errorf("content of the Secret is shown: %s\n%s", diff, rehearsed)
		}
	}
	secret, err := shown(t.Context(), s.admin, namespace, "secretdiff")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, secret, before)
	contains(t, secret, after)
	testkit.EventuallyWithin(t, deadline, "a prompt", func(context.Context) error {
		if out := send("dismiss", "", ""); !strings.Contains(out, "Dismissed what the catalog offers (SyncStatus shop-") {
			return errors.New(out)
		}
		return nil
	})
	contains(t, s.kubectl(t, "get", "envt", "alice", "-n", namespace, "-o=jsonpath={.status.dismissedCatalogSync}"), "shop-")
	contains(t, send("undismiss", "", ""), "What was dismissed is offered again")
	synced(2)
	contains(t, send("rollback", `{"spec":{"revision":1}}`, ""), "Environment alice goes from revision 2 to revision 1 of its catalog")
	s.HasField(t, namespace, "envt/alice", "{.status.appliedRevision}", "1")
	s.HasField(t, namespace+"-alice", "deployment/web", "{.spec.template.spec.containers[0].image}", "shop/web:1")
}

// testEnvironmentRequestPermissions checks that each request requires its own permission, and that none includes Secrets.
func testEnvironmentRequestPermissions(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "environment-rights")
	target := s.namespace(t, namespace+"-alice")
	s.Apply(t, shopIn(namespace, "shop/web:1", "info", "hunter2"))
	s.Apply(t, catalogIn(namespace, namespace))
	s.Apply(t, environmentIn(namespace))
	s.HasField(t, namespace, "cat/shop", "{.status.revision}", "1")
	rosa := s.ordinary(t, "rosa")
	s.grant(t, "rosa", namespace, "readers", "get,list,watch", "environments.configbutler.ai,syncstatuses.configbutler.ai")
	const onBehalf = "which the server would do on their behalf"
	actions := []struct{ verb, subresource, response string }{
		{"create", "sync", onBehalf},
		{"create", "rollback", "spec.revision: Required value"},
		{"create", "resolve", "name fields to keep, fields to take, or both"},
		{"create", "dismiss", `"accepted":true`},
		{"create", "undismiss", `"accepted":true`},
		{"create", "rediscover", `"accepted":true`},
		{"get", "diff", `"kind":"EnvironmentDiff"`},
		{"get", "secretdiff", `user \"rosa\" cannot get secrets in the namespace ` + target + ", whose content is shown"},
	}
	send := func(ctx context.Context, verb, subresource string) string {
		if verb == "get" {
			out, err := shown(ctx, rosa, namespace, subresource)
			return strings.ReplaceAll(fmt.Sprint(out, err), `"rosa"`, `\"rosa\"`)
		}
		out, err := request(ctx, rosa, namespace, "environments/alice", subresource, "", "?dryRun=All")
		return fmt.Sprint(out, err)
	}
	for i, granted := range actions {
		role := "may-" + granted.subresource
		s.kubectl(t, "create", "role", role, "-n", namespace, "--verb="+granted.verb,
			"--resource=environments.configbutler.ai/"+granted.subresource)
		s.kubectl(t, "create", "rolebinding", role, "-n", namespace, "--role="+role, "--user=rosa")
		testkit.EventuallyWithin(t, deadline, "rosa has the permission for "+granted.subresource, func(ctx context.Context) error {
			if out := send(ctx, granted.verb, granted.subresource); !strings.Contains(out, granted.response) {
				return fmt.Errorf("%s, want %s", out, granted.response)
			}
			return nil
		})
		for _, other := range actions[i+1:] {
			want := fmt.Sprintf(`cannot %s resource "environments/%s"`, other.verb, other.subresource)
			if out := send(t.Context(), other.verb, other.subresource); !strings.Contains(out, want) {
				t.Errorf("%s without permission: %s, want %s", other.subresource, out, want)
			}
		}
	}
	s.grant(t, "rosa", target, "secrets", "get", "secrets")
	testkit.EventuallyWithin(t, deadline, "permission on the target's Secrets is not sufficient", func(ctx context.Context) error {
		out := send(ctx, "get", "secretdiff")
		const lacks = "cannot get secrets in the namespace %s,"
		if strings.Contains(out, fmt.Sprintf(lacks, target)) || !strings.Contains(out, fmt.Sprintf(lacks, namespace)) {
			return errors.New(out)
		}
		return nil
	})
	s.grant(t, "rosa", namespace, "secrets", "get", "secrets")
	testkit.EventuallyWithin(t, deadline, "permission on both Secrets is sufficient", func(ctx context.Context) error {
		if out := send(ctx, "get", "secretdiff"); !strings.Contains(out, `"kind":"EnvironmentDiff"`) {
			return errors.New(out)
		}
		return nil
	})
}
