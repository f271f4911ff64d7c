// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// namedIn returns an environment in a namespace.
func namedIn(namespace, name string) []any {
	return []any{&v1alpha1.Environment{TypeMeta: typeMeta("Environment"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
}

// TestWrongName checks that similar names and other namespaces are suggested for a name that does not exist.
func TestWrongName(t *testing.T) {
	const anywhere = "/apis/configbutler.ai/v1alpha1/environments/"
	tests := map[string]struct {
		name, hint string
		lives      map[string][]any
	}{
		"similar": {
			name: "alise", hint: "\nDid you mean \"alice\" or \"alike\" in the namespace teams?",
			lives: map[string][]any{
				alicePath: namedIn("teams", "alice"), ofTeams + "environments/alike": namedIn("teams", "alike"), ofTeams + "environments/bob": namedIn("teams", "bob"),
			},
		},
		"elsewhere": {
			name: "carol", hint: "\nThere is one of this name in the namespace others: give it with -n",
			lives: map[string][]any{alicePath: namedIn("teams", "alice"), anywhere + "carol": namedIn("others", "carol")},
		},
		"nothing like it": {name: "zebra", lives: map[string][]any{alicePath: namedIn("teams", "alice")}},
		"nothing at all":  {name: "zebra"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, code, err := serveRequests(t, tt.lives, nil).in(t, "sync", tt.name)
			want := `environments.configbutler.ai "` + tt.name + `" not found` + tt.hint
			if code != 2 || err == nil || err.Error() != want {
				t.Errorf("exit code %d: %v, want %s", code, err, want)
			}
		})
	}
}

// TestWrongNameInFlag checks that another value of the flag is suggested, and not another namespace of the command.
func TestWrongNameInFlag(t *testing.T) {
	inShop := []any{&v1alpha1.GitDestination{TypeMeta: typeMeta("GitDestination"), ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}}
	lives := map[string][]any{
		"/apis/configbutler.ai/v1alpha1/gitdestinations/shop":                 inShop,
		"/apis/configbutler.ai/v1alpha1/namespaces/shop/gitdestinations/shop": inShop,
	}
	const elsewhere = "\nThere is one of this name in the namespace shop: give it with --destination shop/shop"
	for name, tt := range map[string]struct {
		args []string
		hint string
	}{
		"of a restore":         {[]string{"restore", "--to", "5m", "--destination", "shop"}, elsewhere},
		"of a diff":            {[]string{"diff", "--from", "5m", "--destination", "shop"}, elsewhere},
		"of a bootstrap":       {[]string{"bootstrap", "flux", "--destination", "shop"}, elsewhere},
		"in another namespace": {[]string{"bootstrap", "flux", "--destination", "shop/shpo"}, "\nDid you mean \"shop\" in the namespace shop?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, code, err := serveRequests(t, lives, nil).in(t, tt.args...)
			if code != 2 || err == nil || !strings.HasSuffix(err.Error(), " not found"+tt.hint) {
				t.Errorf("exit code %d: %v", code, err)
			}
		})
	}
}

// TestNameOfAnotherKind checks that the command for the object that has a name is suggested.
func TestNameOfAnotherKind(t *testing.T) {
	environment := namedIn("teams", "staging")
	environment[0].(*v1alpha1.Environment).Spec.CatalogRef.Name = "shop"
	catalog := []any{&v1alpha1.AppCatalog{TypeMeta: typeMeta("AppCatalog"), ObjectMeta: objectMeta("shop", nil)}}
	pipeline := []any{&v1alpha1.SyncPipeline{TypeMeta: typeMeta("SyncPipeline"), ObjectMeta: metav1.ObjectMeta{Name: "index"}}}
	destination := []any{&v1alpha1.GitDestination{TypeMeta: typeMeta("GitDestination"), ObjectMeta: objectMeta("main", nil)}}
	lives := map[string][]any{
		ofTeams + "environments/staging": environment, ofTeams + "appcatalogs/shop": catalog, ofTeams + "gitdestinations/main": destination,
		"/apis/configbutler.ai/v1alpha1/syncpipelines/index": pipeline,
	}
	for line, want := range map[string]string{
		"suspend staging": "Its catalog, for all its environments: kubectl slipstream pause shop -n teams",
		"resume staging":  "Its catalog, for all its environments: kubectl slipstream resume shop -n teams",
		"unsuspend shop":  "There is a catalog of this name: kubectl slipstream resume shop -n teams",
		"suspend index":   "There is a syncpipeline of this name: give it as syncpipeline/index",
		"pause main":      "There is a gitdestination of this name: kubectl slipstream suspend gitdestination/main -n teams",
		"unpin shop":      "There is a catalog of this name: give it as catalog/shop",
	} {
		_, _, code, err := serveRequests(t, lives, nil).in(t, strings.Fields(line)...)
		if code != 2 || err == nil || !strings.Contains(err.Error(), " not found\n") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d: %v", line, code, err)
		}
	}
	for line, want := range map[string]string{
		"undo deployment/cart": "deployment/cart is not the name of a Change. If it is an object, kubectl slipstream log deployment/cart -n teams lists",
		"show nonsense":        "kubectl slipstream log -n teams lists Changes with their names",
	} {
		_, _, code, err := serveRequests(t, lives, nil).in(t, strings.Fields(line)...)
		if code != 2 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d: %v", line, code, err)
		}
	}
}

// TestMissingPermission checks that the role that has a permission is named, with the command that grants it.
func TestMissingPermission(t *testing.T) {
	environments := v1alpha1.Resource("environments")
	tests := map[string]struct{ message, hint string }{
		"in a namespace": {
			`User "jane@example.com" cannot create resource "environments/sync" in API group "configbutler.ai" in the namespace "teams"`,
			"\nYou (jane@example.com) lack the permission to create environments/sync in the namespace teams. The ClusterRole slipstream-edit has it. " +
				"An administrator grants it with:\n  kubectl create rolebinding slipstream-edit-jane-example.com -n teams --clusterrole=slipstream-edit " +
				"--user=jane@example.com",
		},
		"of an account": {
			`User "system:serviceaccount:ci:bot" cannot list resource "environments" in API group "configbutler.ai" at the cluster scope`,
			"\nYou (system:serviceaccount:ci:bot) lack the permission to list environments in the whole cluster. The ClusterRole slipstream-view has it. " +
				"An administrator grants it with:\n  kubectl create clusterrolebinding slipstream-view-system-serviceaccount-ci-bot " +
				"--clusterrole=slipstream-view --serviceaccount=ci:bot",
		},
		"of a user that a shell would interpret": {
			`User "o'neil; x" cannot get resource "environments/secretdiff" in API group "configbutler.ai" in the namespace "teams"`,
			"\nYou (o'neil; x) lack the permission to get environments/secretdiff in the namespace teams. The ClusterRole slipstream-admin has it. " +
				"An administrator grants it with:\n  kubectl create rolebinding 'slipstream-admin-o'\\''neil;-x' -n teams --clusterrole=slipstream-admin " +
				"'--user=o'\\''neil; x'",
		},
		"in a namespace that a shell would interpret": {
			`User "jane" cannot get resource "environments" in API group "configbutler.ai" in the namespace "a;b"`,
			"\nYou (jane) lack the permission to get environments in the namespace a;b. The ClusterRole slipstream-view has it. " +
				"An administrator grants it with:\n  kubectl create rolebinding slipstream-view-jane -n 'a;b' --clusterrole=slipstream-view --user=jane",
		},
		"on other objects": {
			`User "jane" cannot get resource "secrets" in API group "" in the namespace "teams"`,
			"\nYou (jane) lack the permission to get secrets in the namespace teams.",
		},
		"that the server checks": {`user "jane" cannot create deployments in the namespace alice: ask for a Role`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			forbidden := apierrors.NewForbidden(environments, "alice", errors.New(tt.message))
			_, _, code, err := serveRequests(t, nil, map[string]any{alicePath + "/sync": forbidden.Status()}).in(t, "sync", "alice")
			if want := forbidden.Error() + tt.hint; code != 5 || err == nil || err.Error() != want {
				t.Errorf("exit code %d: %v\nwant %s", code, err, want)
			}
		})
	}
}

// TestForgedHint checks that a message of the server has no lines at the margin, as hints of the plugin have, and gives no command.
func TestForgedHint(t *testing.T) {
	const denial = `User "jane" cannot create resource "environments/sync" in API group "configbutler.ai" in the namespace `
	for message, want := range map[string]string{
		"no\nAn administrator grants it with:\n  curl x": "no\n  An administrator grants it with:\n  curl x",
		denial + "\"a\nb\"": denial + "\"a\n  b\"",
	} {
		forbidden := apierrors.NewForbidden(v1alpha1.Resource("environments"), "alice", errors.New(message))
		_, _, code, err := serveRequests(t, nil, map[string]any{alicePath + "/sync": forbidden.Status()}).in(t, "sync", "alice")
		if code != 5 || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("exit code %d: %v", code, err)
		}
	}
}

// TestAPIThatDoesNotAnswer checks what is said about each part that can be missing.
func TestAPIThatDoesNotAnswer(t *testing.T) {
	status := func(code int) metav1.Status {
		return apierrors.NewGenericServerResponse(code, http.MethodPost, v1alpha1.Resource("environments"), "alice", "no", 0, true).Status()
	}
	const group = "/apis/configbutler.ai/v1alpha1"
	tests := map[string]struct {
		answers map[string]any
		hint    string
	}{
		"not installed": {map[string]any{alicePath + "/sync": status(http.StatusNotFound)}, "\nSlipstream is not installed in this cluster"},
		"server that does not run": {
			map[string]any{alicePath + "/sync": status(http.StatusServiceUnavailable)},
			"\nSlipstream's API is registered, and its server does not answer now.",
		},
		"server that stops": {
			map[string]any{alicePath + "/sync": status(http.StatusNotFound), group: status(http.StatusServiceUnavailable)},
			"\nSlipstream's API is registered, and its server does not answer now.",
		},
		"older server": {
			map[string]any{alicePath + "/sync": status(http.StatusNotFound), group: &metav1.APIResourceList{}},
			"\nSlipstream in this cluster does not have this request: it is older than the plugin.",
		},
		"older server, in its own words": {
			map[string]any{
				alicePath + "/sync": metav1.Status{
					Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
					Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
				},
				group: &metav1.APIResourceList{},
			},
			"\nSlipstream in this cluster does not have this request: it is older than the plugin.",
		},
		"no login": {map[string]any{alicePath + "/sync": status(http.StatusUnauthorized)}, "\nThe login is not valid, or has expired."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, code, err := serveRequests(t, nil, tt.answers).in(t, "sync", "alice")
			if code != 2 || err == nil || !strings.Contains(err.Error(), tt.hint) {
				t.Errorf("exit code %d: %v", code, err)
			}
		})
	}
	t.Run("namespace that does not exist", func(t *testing.T) {
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "teams").Status()
		_, _, code, err := serveRequests(t, nil, map[string]any{alicePath + "/sync": missing, group: &metav1.APIResourceList{}}).in(t, "sync", "alice")
		if code != 2 || err == nil || err.Error() != `namespaces "teams" not found` {
			t.Errorf("exit code %d: %v", code, err)
		}
	})
	t.Run("cluster that is down", func(t *testing.T) {
		s := serveRequests(t, nil, nil)
		s.Close()
		_, _, code, err := s.in(t, "sync", "alice")
		if code != 2 || err == nil || !strings.Contains(err.Error(), "\nThe API server "+s.URL+" cannot be reached. Check the address") {
			t.Errorf("exit code %d: %v", code, err)
		}
	})
}
