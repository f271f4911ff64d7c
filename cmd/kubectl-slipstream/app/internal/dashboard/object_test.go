// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

type offered struct {
	Action, Title, Reason string
	Allowed               bool
}

// actionsOf returns the actions of an object by name.
func actionsOf(t *testing.T, p *page, of string) map[string]offered {
	t.Helper()
	var response struct{ Actions []offered }
	p.read(t, "/api/actions", of, &response)
	found := map[string]offered{}
	for _, each := range response.Actions {
		found[each.Action] = each
	}
	return found
}

// TestActions says which permission the user lacks, and which actions have nothing to do.
func TestActions(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/teams/environments/alice"] = environment(nil, map[string]any{"dismissedCatalogSync": "x"})
	c.denied = []string{"create environments/rollback", "patch environments"}
	p := login(t, c)
	for range 2 { // The second time without reviews.
		found := actionsOf(t, p, `{`+alice+`}`)
		for name, want := range map[string]string{
			"sync":      "",
			"undismiss": "",
			"resolve":   "There are no conflicts",
			"rollback":  "You lack the permission to create environments/rollback in the namespace teams. The ClusterRole slipstream-edit has it.",
			"unpin":     "You lack the permission to patch environments in the namespace teams. The ClusterRole slipstream-edit has it.",
			"save":      "You lack the permission to patch environments in the namespace teams. The ClusterRole slipstream-edit has it.",
		} {
			got, exists := found[name]
			if !exists || got.Title == "" || got.Reason != want || got.Allowed != (want == "") {
				t.Errorf("%s is %+v, want the reason %q", name, got, want)
			}
		}
	}
	c.change(func() {
		slices.Sort(c.reviewed)
		if once := slices.Compact(slices.Clone(c.reviewed)); len(once) < 9 || len(c.reviewed) > len(once)+2 || !slices.Contains(once, "create environments/sync teams/alice") {
			t.Errorf("reviewed %q", c.reviewed) // Some reviews of the same permission run at the same time.
		}
	})
}

// TestActionsOfPolicy says whether the settings can be saved, also before there are any.
func TestActionsOfPolicy(t *testing.T) {
	c := newCluster(t)
	if found := actionsOf(t, login(t, c), `{"resource":"syncpolicies","name":"default"}`); !found["save"].Allowed {
		t.Errorf("save is %+v, want it allowed", found["save"])
	}
}

// TestActionsOfChange reviews the permissions for the object of a Change.
func TestActionsOfChange(t *testing.T) {
	for operation, want := range map[string]struct{ denied, undo, restore string }{
		"Update": {"update deployments", "update deployments", "update deployments"},
		"Create": {"delete deployments", "delete deployments", ""},
		"Delete": {"create deployments", "create deployments", "create deployments"},
	} {
		c := newCluster(t)
		c.objects["namespaces/server/changes/a-1"] = change(operation)
		c.denied = []string{want.denied}
		found := actionsOf(t, login(t, c), `{"resource":"changes","namespace":"server","name":"a-1"}`)
		for action, lacks := range map[string]string{"show": "", "undo": want.undo, "restore": want.restore} {
			if lacks != "" {
				lacks = "You lack the permission to " + lacks + " in the namespace shop."
			}
			if found[action].Reason != lacks {
				t.Errorf("%s of %s: %+v, want the reason %q", action, operation, found[action], lacks)
			}
		}
	}
}

func change(operation string) map[string]any {
	return map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": "Change", "metadata": map[string]any{"namespace": "server", "name": "a-1"},
		"spec": map[string]any{
			"operation": operation,
			"object":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "resource": "deployments", "namespace": "shop", "name": "web"},
		},
	}
}

// TestChange shows a Change with its contents, or why they are missing.
func TestChange(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/server/changes/a-1"] = change("Update")
	p := login(t, c)
	type changed struct {
		Change               map[string]any
		Before, After, Error string
	}
	var got changed
	p.read(t, "/api/change", `{"namespace":"server","name":"a-1"}`, &got)
	if got.Error == "" || got.Before != "" || got.Change["spec"] == nil {
		t.Errorf("without contents: %+v", got)
	}
	c.change(func() {
		c.objects["namespaces/server/changes/a-1/diff"] = map[string]any{
			"apiVersion": "configbutler.ai/v1alpha1", "kind": "ChangeDiff", "after": map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": 2}},
		}
	})
	got = changed{}
	p.read(t, "/api/change", `{"namespace":"server","name":"a-1"}`, &got)
	if got.Error != "" || got.Before != "" || got.After != "kind: Deployment\nspec:\n  replicas: 2\n" {
		t.Errorf("with contents: %+v", got)
	}
}

// TestObject shows an object without its managed fields, and the errors of the cluster.
func TestObject(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/teams/environments/alice"] = environment(map[string]any{"autoSync": true}, nil)
	c.objects["namespaces/teams/environments/bob"] = apierrors.NewUnauthorized("expired")
	p := login(t, c)
	var got struct{ Object map[string]any }
	p.read(t, "/api/object", `{`+alice+`}`, &got)
	if metadata := got.Object["metadata"].(map[string]any); metadata["name"] != "alice" || metadata["managedFields"] != nil {
		t.Errorf("the object is %v", got.Object)
	}
	for name, want := range map[string]struct {
		status int
		text   string
	}{
		"carol": {http.StatusNotFound, "not found"},
		"bob":   {http.StatusBadGateway, "Log in again"},
		"a/b":   {http.StatusBadRequest, "cannot be the name"},
	} {
		status, body := p.call(t, "/api/object", `{"resource":"environments","namespace":"teams","name":"`+name+`"}`)
		if status != want.status || !strings.Contains(body, want.text) {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
}

// TestList reads a page of a list.
func TestList(t *testing.T) {
	c := newCluster(t)
	table := tableOf([2]string{"shop-x7k2p", "Failed"})
	table.Continue = "more"
	c.tables["namespaces/teams/syncstatuses"] = table
	var got struct {
		Columns  []string
		Rows     []struct{ Name string }
		Continue string
	}
	login(t, c).read(t, "/api/list", `{"resource":"syncstatuses","namespace":"teams","labelSelector":"a=b","limit":1}`, &got)
	if !cmp.Equal(got.Columns, []string{"Name", "State"}) || len(got.Rows) != 1 || got.Rows[0].Name != "shop-x7k2p" || got.Continue != "more" {
		t.Errorf("the list is %+v", got)
	}
}

// TestPatch changes a spec unless the object has changed since the user has seen it.
func TestPatch(t *testing.T) {
	const policy = `"resource":"syncpolicies","name":"default"`
	stale := apierrors.NewConflict(v1alpha1.Resource("environments"), "alice", http.ErrAbortHandler)
	for name, test := range map[string]struct {
		request, path string
		response      any
		status        int
		write         string
	}{
		"environment": {
			`{` + alice + `,"resourceVersion":"7","spec":{"autoSync":true}}`, "namespaces/teams/environments/alice", environment(nil, nil), http.StatusOK,
			`PATCH namespaces/teams/environments/alice  {"metadata":{"resourceVersion":"7"},"spec":{"autoSync":true}}`,
		},
		"stale": {
			`{` + alice + `,"resourceVersion":"6","spec":{"shadow":null}}`, "namespaces/teams/environments/alice", stale, http.StatusConflict,
			`PATCH namespaces/teams/environments/alice  {"metadata":{"resourceVersion":"6"},"spec":{"shadow":null}}`,
		},
		"policy": {
			`{` + policy + `,"resourceVersion":"9","spec":{"changes":{"ttl":"1h"}}}`, "syncpolicies/default", environment(nil, nil), http.StatusOK,
			`PATCH syncpolicies/default  {"metadata":{"resourceVersion":"9"},"spec":{"changes":{"ttl":"1h"}}}`,
		},
		"new policy": {
			`{` + policy + `,"spec":{"changes":{"ttl":"1h"}}}`, "syncpolicies", environment(nil, nil), http.StatusOK,
			`POST syncpolicies  {"apiVersion":"configbutler.ai/v1alpha1","kind":"SyncPolicy","metadata":{"name":"default"},"spec":{"changes":{"ttl":"1h"}}}` + "\n",
		},
		"policy of another": {
			`{` + policy + `,"spec":{}}`, "syncpolicies", apierrors.NewAlreadyExists(v1alpha1.Resource("syncpolicies"), "default"), http.StatusConflict,
			`POST syncpolicies  {"apiVersion":"configbutler.ai/v1alpha1","kind":"SyncPolicy","metadata":{"name":"default"},"spec":{}}` + "\n",
		},
		"without a version": {request: `{` + alice + `,"spec":{"autoSync":true}}`, status: http.StatusBadRequest},
		"another field":     {request: `{` + alice + `,"resourceVersion":"7","spec":{"patches":[]}}`, status: http.StatusBadRequest},
		"another policy":    {request: `{"resource":"syncpolicies","name":"other","spec":{}}`, status: http.StatusBadRequest},
		"another resource": {
			request: `{"resource":"appcatalogs","namespace":"teams","name":"shop","resourceVersion":"7","spec":{}}`, status: http.StatusBadRequest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.objects[test.path] = test.response
			status, body := login(t, c, "--allow-changes").call(t, "/api/patch", test.request)
			if status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, body)
			}
			if strings.Contains(body, "managedFields") || strings.Contains(body, "It has changed since") != (status == http.StatusConflict) {
				t.Errorf("the response is %s", body)
			}
			if written := strings.Join(c.written(), "\n"); written != test.write {
				t.Errorf("written %q, want %q", written, test.write)
			}
		})
	}
}
