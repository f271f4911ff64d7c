// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// request creates a subresource of an object with kubectl, which sends no content type.
func request(ctx context.Context, as devcluster.Kubectl, namespace, object, subresource, body, query string) (string, error) {
	path := fmt.Sprintf("/apis/configbutler.ai/v1alpha1/namespaces/%s/%s/%s%s", namespace, object, subresource, query)
	return as.Feed(ctx, body, "create", "--raw", path, "-f", "-")
}

// testRequests checks that each request has defaults, except for a rollback, which requires a revision.
func testRequests(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "requests")
	s.Apply(t, catalogIn(namespace, namespace))
	for _, body := range []string{"", "{}", " \n", `{"metadata":{"namespace":"requests","name":"shop"}}`} {
		out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", body, "?dryRun=All")
		if err != nil || !strings.Contains(out, `"accepted":true,"message":"Would read the namespace requests anew (dry run)"`) {
			t.Errorf("sync with the body %q: %v: %s", body, err, out)
		}
	}
	for _, each := range []struct{ object, subresource, body, want string }{
		{"appcatalogs/shop", "sync", `{"metadata":{"name":"other"}}`, "metadata.name: Invalid value: \"other\": must be shop"},
		{"appcatalogs/shop", "sync", `{"metadata":{"namespace":"default"}}`, "does not match the namespace sent on the request"},
		{"appcatalogs/shop", "sync", `{"spec":{}}`, `unknown field "spec"`},
		{"appcatalogs/shop", "rollback", "", "spec.revision: Required value: name the revision to go to"},
		{"appcatalogs/shop", "rollback", "{}", "spec.revision: Required value: name the revision to go to"},
		{"appcatalogs/shop", "rollback", `{"spec":{"revision":7}}`, "spec.revision: "},
		{"appcatalogs/none", "sync", "", "NotFound"},
		{"appcatalogs/none", "rollback", `{"spec":{"revision":1}}`, "NotFound"},
		{"syncstatuses/none", "dismiss", "", "NotFound"},
		{"syncstatuses/none", "dismiss", "{}", "NotFound"},
		{"syncstatuses/none", "retry", "", "NotFound"},
		{"syncstatuses/none", "retry", "{}", "NotFound"},
	} {
		out, err := request(t.Context(), s.admin, namespace, each.object, each.subresource, each.body, "?fieldValidation=Strict")
		if err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("%s of %s with the body %q: %v: %s, want %s", each.subresource, each.object, each.body, err, out, each.want)
		}
	}
	if out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", ""); err != nil ||
		!strings.Contains(out, `"accepted":true`) {
		t.Errorf("sync: %v: %s", err, out)
	}
}

// testRecordRequests dismisses a record, which is final.
func testRecordRequests(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "record-requests")
	s.kubectl(t, "create", "deployment", "web", "-n", namespace, "--image=shop/web:1")
	s.Apply(t, catalogIn(namespace, namespace))
	s.HasField(t, namespace, "cat/shop", "{.status.revision}", "1")
	record := "syncstatuses/" + s.jsonpath(t, "{.status.latestSync}", "cat", "shop", "-n", namespace)
	const nothingFollows = "cannot become Retrying: nothing follows Dismissed; Retrying follows Failed or ManualIntervention"
	for _, each := range []struct{ subresource, body, query, want string }{
		{"dismiss", "", "?dryRun=All", "Would be dismissed (dry run)"},
		{"dismiss", "", "", "Dismissed; nothing else has changed"},
		{"dismiss", "{}", "", " has dismissed it already"},
		{"retry", "", "", nothingFollows},
		{"retry", "{}", "", nothingFollows},
	} {
		out, err := request(t.Context(), s.admin, namespace, record, each.subresource, each.body, each.query)
		if output := fmt.Sprint(out, err); !strings.Contains(output, each.want) {
			t.Errorf("%s%s with the body %q: %s, want %s", each.subresource, each.query, each.body, output, each.want)
		}
	}
	contains(t, s.kubectl(t, "get", "ss", "-n", namespace), "Dismissed by ")
	synced(t, s, namespace)
	out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "rollback", `{"spec":{"revision":1}}`, "")
	if want := "AppCatalog shop goes from revision 2 to what it was at revision 1"; err != nil || !strings.Contains(out, want) {
		t.Errorf("rollback: %v: %s, want %s", err, out, want)
	}
	_, err = request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", "")
	if err == nil || !strings.Contains(err.Error(), "its spec.pinnedRevision is 1; to go forward: kubectl patch") {
		t.Errorf("sync of a pinned catalog: %v", err)
	}
}

// synced requests a sync of a changed source. The response must not report that nothing has changed.
func synced(t *testing.T, s *testCluster, namespace string) {
	t.Helper()
	s.kubectl(t, "set", "image", "deployment/web", "*=shop/web:2", "-n", namespace)
	out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", "")
	changed, pending := strings.Contains(out, "1 workload changed"), strings.Contains(out, "The request is accepted")
	if err != nil || !changed && !pending {
		t.Errorf("sync: %v: %s", err, out)
	}
	s.HasField(t, namespace, "cat/shop", "{.status.revision}", "2")
	testkit.EventuallyWithin(t, deadline, "the source is unchanged", func(ctx context.Context) error {
		out, err := request(ctx, s.admin, namespace, "appcatalogs/shop", "sync", "", "")
		if err == nil && !strings.Contains(out, "The namespace "+namespace+" has been read: nothing had changed that is not recorded already") {
			err = errors.New(out)
		}
		return err
	})
}

// testRetry limits the attempts to one, so that only requests of users retry a failure.
func testRetry(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "retries")
	s.Apply(t, strings.Replace(policy, "batchWindow: 1s", "batchWindow: 1s, retry: {maxAttempts: 1}", 1))
	t.Cleanup(func() { _, _ = s.admin.Run(context.WithoutCancel(t.Context()), "delete", "syncpolicy", "default") })
	s.kubectl(t, "create", "deployment", "web", "-n", namespace, "--image=shop/web:1")
	const misfit = `, patches: [{target: {kind: Deployment}, type: JSON6902, patch: '[{"op": "remove", "path": "/spec/nothing"}]'}]}`
	s.Apply(t, strings.Replace(catalogIn(namespace, namespace), "name: web}]}", "name: web}]"+misfit, 1))
	records := []string{"ss", "-l", "configbutler.ai/catalog=shop", "-n", namespace}
	waitFor := func(state string, attempts int) {
		for _, want := range []string{fmt.Sprint("attempts}=", attempts), "state}=" + state} {
			s.kubectl(t, append([]string{"wait", "--for=jsonpath={.status." + want, "--timeout=" + deadline.String()}, records...)...)
		}
	}
	testkit.EventuallyWithin(t, deadline, "a record", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, append([]string{"get", "-o", "name"}, records...)...)
		if err == nil && out == "" {
			err = errors.New("no record")
		}
		return err
	})
	waitFor("ManualIntervention", 1)
	record := "syncstatuses/" + s.kubectl(t, append([]string{"get", "-o", "jsonpath={.items[0].metadata.name}"}, records...)...)
	retry := func(attempt int) {
		out, err := request(t.Context(), s.admin, namespace, record, "retry", "", "")
		if want := fmt.Sprintf("Attempt %d is under way", attempt); err != nil || !strings.Contains(out, want) {
			t.Errorf("retry: %v: %s, want %s", err, out, want)
		}
	}
	retry(2)
	waitFor("ManualIntervention", 2)
	s.Patch(t, namespace, "cat/shop", `{"spec":{"patches":null}}`)
	s.HasField(t, namespace, "cat/shop", "{.status.revision}", "1")
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(record, "syncstatuses/")
	retried, err := client.ConfigbutlerV1alpha1().SyncStatuses(namespace).Retry(t.Context(), name, &v1alpha1.Retry{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !retried.Status.Accepted || !slices.Equal(retried.Status.SyncStatuses, []string{name}) || retried.Namespace != namespace {
		t.Errorf("response in %s: %+v", retried.Namespace, retried.Status)
	}
	s.HasField(t, namespace, record, "{.status.state}", "Applied")
}

// testRequestPermissions checks that each request requires its own permission.
func testRequestPermissions(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "request-rights")
	s.Apply(t, catalogIn(namespace, namespace))
	rita := s.ordinary(t, "rita")
	s.grant(t, "rita", namespace, "readers", "get,list,watch", "appcatalogs.configbutler.ai,syncstatuses.configbutler.ai")
	actions := []struct{ resource, object, subresource, response string }{
		{"appcatalogs", "shop", "sync", `"accepted":true`},
		{"appcatalogs", "shop", "rollback", "spec.revision: Required value"},
		{"syncstatuses", "none", "dismiss", "NotFound"},
		{"syncstatuses", "none", "retry", "NotFound"},
	}
	send := func(ctx context.Context, resource, object, subresource string) string {
		out, err := request(ctx, rita, namespace, resource+"/"+object, subresource, "", "?dryRun=All")
		return fmt.Sprint(out, err)
	}
	for i, granted := range actions {
		role := granted.resource + "-" + granted.subresource
		s.kubectl(t, "create", "role", role, "-n", namespace, "--verb=create",
			"--resource="+granted.resource+".configbutler.ai/"+granted.subresource)
		s.kubectl(t, "create", "rolebinding", role, "-n", namespace, "--role="+role, "--user=rita")
		testkit.EventuallyWithin(t, deadline, "rita has the permission for "+role, func(ctx context.Context) error {
			if output := send(ctx, granted.resource, granted.object, granted.subresource); !strings.Contains(output, granted.response) {
				return fmt.Errorf("%s, want %s", output, granted.response)
			}
			return nil
		})
		for _, other := range actions[i+1:] {
			want := fmt.Sprintf(`cannot create resource "%s/%s"`, other.resource, other.subresource)
			if output := send(t.Context(), other.resource, other.object, other.subresource); !strings.Contains(output, want) {
				t.Errorf("%s of %s without permission: %s, want %s", other.subresource, other.resource, output, want)
			}
		}
	}
}
