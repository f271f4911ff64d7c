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
)

// request creates a request at a subresource of an object, with plain kubectl, which sends no content type with it.
func request(ctx context.Context, as devcluster.Kubectl, namespace, object, subresource, body, query string) (string, error) {
	path := fmt.Sprintf("/apis/configbutler.ai/v1alpha1/namespaces/%s/%s/%s%s", namespace, object, subresource, query)
	return as.Feed(ctx, body, "create", "--raw", path, "-f", "-")
}

// Every action has defaults for all that can be asked of it, but for a rollback, which needs a revision.
func testRequests(t *testing.T, s *stage) {
	namespace := s.namespace(t, "requests")
	s.apply(t, catalogIn(namespace, namespace))
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
	if out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", ""); err != nil || !strings.Contains(out, `"accepted":true`) {
		t.Errorf("sync: %v: %s", err, out)
	}
}

// What a user says of a record stays, and is said once.
func testRecordRequests(t *testing.T, s *stage) {
	namespace := s.namespace(t, "record-requests")
	s.kubectl(t, "create", "deployment", "web", "-n", namespace, "--image=shop/web:1")
	s.apply(t, catalogIn(namespace, namespace))
	s.kubectl(t, "wait", "--for=jsonpath={.status.revision}=1", "cat/shop", "-n", namespace, "--timeout=180s")
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
		if said := fmt.Sprint(out, err); !strings.Contains(said, each.want) {
			t.Errorf("%s%s with the body %q: %s, want %s", each.subresource, each.query, each.body, said, each.want)
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

// synced has a catalog read a source that has changed. Nobody who asks is told that it has not.
func synced(t *testing.T, s *stage, namespace string) {
	t.Helper()
	s.kubectl(t, "set", "image", "deployment/web", "*=shop/web:2", "-n", namespace)
	out, err := request(t.Context(), s.admin, namespace, "appcatalogs/shop", "sync", "", "")
	told, waits := strings.Contains(out, "1 workload changed"), strings.Contains(out, "The request is accepted")
	if err != nil || !told && !waits {
		t.Errorf("sync: %v: %s", err, out)
	}
	s.kubectl(t, "wait", "--for=jsonpath={.status.revision}=2", "cat/shop", "-n", namespace, "--timeout=180s")
	eventually(t, "the source is as it was", func(ctx context.Context) error {
		out, err := request(ctx, s.admin, namespace, "appcatalogs/shop", "sync", "", "")
		if err == nil && !strings.Contains(out, "The namespace "+namespace+" has been read: nothing had changed that is not recorded already") {
			err = errors.New(out)
		}
		return err
	})
}

// With one attempt in the policy, what fails is tried again at a user's word and never without.
func testRetry(t *testing.T, s *stage) {
	namespace := s.namespace(t, "retries")
	s.apply(t, strings.Replace(policy, "batchWindow: 1s", "batchWindow: 1s, retry: {maxAttempts: 1}", 1))
	t.Cleanup(func() { _, _ = s.admin.Run(context.WithoutCancel(t.Context()), "delete", "syncpolicy", "default") })
	s.kubectl(t, "create", "deployment", "web", "-n", namespace, "--image=shop/web:1")
	const misfit = `, patches: [{target: {kind: Deployment}, type: JSON6902, patch: '[{"op": "remove", "path": "/spec/nothing"}]'}]}`
	s.apply(t, strings.Replace(catalogIn(namespace, namespace), "name: web}]}", "name: web}]"+misfit, 1))
	records := []string{"ss", "-l", "configbutler.ai/catalog=shop", "-n", namespace}
	becomes := func(state string, attempts int) {
		for _, want := range []string{fmt.Sprint("attempts}=", attempts), "state}=" + state} {
			s.kubectl(t, append([]string{"wait", "--for=jsonpath={.status." + want, "--timeout=180s"}, records...)...)
		}
	}
	eventually(t, "a record", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, append([]string{"get", "-o", "name"}, records...)...)
		if err == nil && out == "" {
			err = errors.New("there is none")
		}
		return err
	})
	becomes("ManualIntervention", 1)
	record := "syncstatuses/" + s.jsonpath(t, "{.items[0].metadata.name}", records...)
	retry := func(attempt int) {
		out, err := request(t.Context(), s.admin, namespace, record, "retry", "", "")
		if want := fmt.Sprintf("Attempt %d is under way", attempt); err != nil || !strings.Contains(out, want) {
			t.Errorf("retry: %v: %s, want %s", err, out, want)
		}
	}
	retry(2)
	becomes("ManualIntervention", 2)
	s.kubectl(t, "patch", "cat", "shop", "-n", namespace, "--type=merge", "-p", `{"spec":{"patches":null}}`)
	s.kubectl(t, "wait", "--for=jsonpath={.status.revision}=1", "cat/shop", "-n", namespace, "--timeout=180s")
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(record, "syncstatuses/")
	answer, err := client.ConfigbutlerV1alpha1().SyncStatuses(namespace).Retry(t.Context(), name, &v1alpha1.Retry{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !answer.Status.Accepted || !slices.Equal(answer.Status.SyncStatuses, []string{name}) || answer.Namespace != namespace {
		t.Errorf("answer in %s: %+v", answer.Namespace, answer.Status)
	}
	s.kubectl(t, "wait", "--for=jsonpath={.status.state}=Applied", record, "-n", namespace, "--timeout=180s")
}

// Who may look may not touch, and who may do one thing may not do another.
func testRequestRights(t *testing.T, s *stage) {
	namespace := s.namespace(t, "request-rights")
	s.apply(t, catalogIn(namespace, namespace))
	rita := s.ordinary(t, "rita")
	s.grant(t, "rita", namespace, "looks", "get,list,watch", "appcatalogs.configbutler.ai,syncstatuses.configbutler.ai")
	actions := []struct{ resource, object, subresource, answer string }{
		{"appcatalogs", "shop", "sync", `"accepted":true`},
		{"appcatalogs", "shop", "rollback", "spec.revision: Required value"},
		{"syncstatuses", "none", "dismiss", "NotFound"},
		{"syncstatuses", "none", "retry", "NotFound"},
	}
	ask := func(ctx context.Context, resource, object, subresource string) string {
		out, err := request(ctx, rita, namespace, resource+"/"+object, subresource, "", "?dryRun=All")
		return fmt.Sprint(out, err)
	}
	for i, granted := range actions {
		role := granted.resource + "-" + granted.subresource
		s.kubectl(t, "create", "role", role, "-n", namespace, "--verb=create",
			"--resource="+granted.resource+".configbutler.ai/"+granted.subresource)
		s.kubectl(t, "create", "rolebinding", role, "-n", namespace, "--role="+role, "--user=rita")
		eventually(t, "rita has the right to "+role, func(ctx context.Context) error {
			if said := ask(ctx, granted.resource, granted.object, granted.subresource); !strings.Contains(said, granted.answer) {
				return fmt.Errorf("%s, want %s", said, granted.answer)
			}
			return nil
		})
		for _, other := range actions[i+1:] {
			want := fmt.Sprintf(`cannot create resource "%s/%s"`, other.resource, other.subresource)
			if said := ask(t.Context(), other.resource, other.object, other.subresource); !strings.Contains(said, want) {
				t.Errorf("rita asks for %s of %s: %s, want %s", other.subresource, other.resource, said, want)
			}
		}
	}
}
