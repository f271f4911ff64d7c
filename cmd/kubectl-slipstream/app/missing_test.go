// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	ofTeams      = "/apis/configbutler.ai/v1alpha1/namespaces/teams/"
	ofRBAC       = "/apis/rbac.authorization.k8s.io/v1/"
	ofProduction = ofRBAC + "namespaces/production/"
)

// lackingServer has the environment alice, made from production, and objects that it lacks.
func lackingServer(t *testing.T, objects map[string]any, status v1alpha1.EnvironmentStatus) *server {
	t.Helper()
	objects[ofTeams+"environments/alice"] = v1alpha1.Environment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "Environment"},
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Namespace: "teams"},
		Spec:       v1alpha1.EnvironmentSpec{CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: "shop-alice"}, Status: status,
	}
	objects[ofTeams+"appcatalogs/shop"] = v1alpha1.AppCatalog{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "AppCatalog"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "teams"},
		Spec:       v1alpha1.AppCatalogSpec{SourceNamespace: "production"},
	}
	return fixed(t, objects)
}

func lacks(objects ...v1alpha1.NotCopiedObject) v1alpha1.EnvironmentStatus {
	return v1alpha1.EnvironmentStatus{NotCopied: objects, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionObjectsMissing}}}
}

func granting(kind, name string) v1alpha1.NotCopiedObject {
	return v1alpha1.NotCopiedObject{Kind: kind, Name: name, Reason: v1alpha1.NotCopiedGrantsRights, ServiceAccounts: []string{"web"}}
}

// inProduction is an object of RBAC as an API server shows it.
func inProduction(kind, name string, more map[string]any) map[string]any {
	object := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "production", "uid": "1", "resourceVersion": "2"},
	}
	for field, value := range more {
		object[field] = value
	}
	return object
}

func TestMissingPrintsWhatIsToBeApplied(t *testing.T) {
	subjects := []any{
		map[string]any{"kind": "ServiceAccount", "name": "web", "namespace": "production"}, map[string]any{"kind": "User", "name": "ann"},
	}
	ref := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"}
	s := lackingServer(t, map[string]any{
		ofProduction + "roles/web": inProduction("Role", "web", map[string]any{
			"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
		}),
		ofProduction + "rolebindings/web":  inProduction("RoleBinding", "web", map[string]any{"roleRef": ref, "subjects": subjects}),
		ofRBAC + "clusterrolebindings/web": inProduction("ClusterRoleBinding", "web", map[string]any{"roleRef": ref, "subjects": subjects}),
	}, lacks(
		v1alpha1.NotCopiedObject{Kind: "ClusterRoleBinding", Name: "*", Reason: v1alpha1.NotCopiedUnreadable},
		granting("ClusterRoleBinding", "web"), granting("Role", "gone"), granting("Role", "web"), granting("RoleBinding", "web")))
	out, notes, code, err := s.call(t.Context(), "missing", "alice", "-n", "teams")
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: web-shop-alice-1d5aa75f
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: web
subjects:
- kind: ServiceAccount
  name: web
  namespace: shop-alice
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: web
  namespace: shop-alice
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: web-shop-alice-8463a7c4
  namespace: shop-alice
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: web
subjects:
- kind: ServiceAccount
  name: web
  namespace: shop-alice
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("The server may not list ClusterRoleBindings: whether the environment lacks any is not known\n"+
		"Role gone does not exist any more where the environment is made from\n", notes); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
}

// TestMissingReplacesNothing has the target have objects of the names.
func TestMissingReplacesNothing(t *testing.T) {
	account := func(namespace, name string) any {
		return map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}
	}
	binding := func(kind, name, role string, subjects ...any) map[string]any {
		ref := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
		return inProduction(kind, name, map[string]any{"roleRef": ref, "subjects": subjects})
	}
	const inTarget = ofRBAC + "namespaces/shop-alice/"
	ann := map[string]any{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
	s := lackingServer(t, map[string]any{
		ofProduction + "roles/web":                             inProduction("Role", "web", nil),
		inTarget + "roles/web":                                 inProduction("Role", "web", nil),
		ofProduction + "rolebindings/web":                      binding("RoleBinding", "web", "web", account("production", "web")),
		inTarget + "rolebindings/web":                          binding("RoleBinding", "web", "web", ann),
		inTarget + "rolebindings/web-shop-alice-8463a7c4":      binding("RoleBinding", "web", "web", ann, account("shop-alice", "old")),
		ofRBAC + "clusterrolebindings/web":                     binding("ClusterRoleBinding", "web", "web", account("production", "web")),
		ofRBAC + "clusterrolebindings/web-shop-alice-1d5aa75f": binding("ClusterRoleBinding", "web", "web", account("shop-alice", "web")),
	}, lacks(granting("ClusterRoleBinding", "web"), granting("Role", "web"), granting("RoleBinding", "web")))
	out, notes, code, err := s.call(t.Context(), "missing", "alice", "-n", "teams")
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: web-shop-alice-8463a7c4
  namespace: shop-alice
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: web
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: ann
- kind: ServiceAccount
  name: old
  namespace: shop-alice
- kind: ServiceAccount
  name: web
  namespace: shop-alice
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("ClusterRoleBinding web-shop-alice-1d5aa75f is there by now, and is left as it is\n"+
		"Role web is there by now, and is left as it is\n", notes); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
}

// TestMissingLeavesMarksOut has the SyncPolicy name the mark of a tool.
func TestMissingLeavesMarksOut(t *testing.T) {
	policies := schema.GroupResource{Group: "configbutler.ai", Resource: "syncpolicies"}
	tests := map[string]struct {
		policy any
		want   string
	}{
		"named": {v1alpha1.SyncPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "SyncPolicy"}, ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec: v1alpha1.SyncPolicySpec{TrackingMarks: []string{"example.com/*"}},
		}, "  labels:\n    app: web\n  name: web\n"},
		"not to be read": {
			apierrors.NewForbidden(policies, "default", nil).Status(), "  labels:\n    app: web\n    example.com/tool: x\n  name: web\n",
		},
		"not there": {
			apierrors.NewNotFound(policies, "default").Status(), "  labels:\n    app: web\n    example.com/tool: x\n  name: web\n",
		},
		"no answer": {apierrors.NewInternalError(errors.New("no")).Status(), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			role := inProduction("Role", "web", nil)
			role["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web", "example.com/tool": "x", "argocd.argoproj.io/instance": "x"}
			s := lackingServer(t, map[string]any{
				"/apis/configbutler.ai/v1alpha1/syncpolicies/default": tt.policy, ofProduction + "roles/web": role,
			}, lacks(granting("Role", "web")))
			out, _, _, err := s.call(t.Context(), "missing", "alice", "-n", "teams")
			if (err == nil) != (tt.want != "") || !strings.Contains(out, tt.want) || err != nil && out != "" {
				t.Errorf("ends with %v, and printed:\n%s", err, out)
			}
		})
	}
}

func TestMissingEnds(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	forbidden := apierrors.NewForbidden(roles, "secret", nil).Status()
	tests := map[string]struct {
		status        v1alpha1.EnvironmentStatus
		name          string
		code          int
		note, problem string
	}{
		"nothing is missing":  {status: lacks(), name: "alice", note: "shop-alice lacks nothing that the server does not copy\n"},
		"with the type":       {status: lacks(), name: "env/alice", note: "shop-alice lacks nothing that the server does not copy\n"},
		"another type":        {name: "catalog/alice", code: 2, problem: `"catalog" is no type of this command: it takes environment`},
		"it is not known yet": {name: "alice", code: 2, problem: "is not known yet"},
		"no such environment": {name: "bob", code: 2, problem: "not found"},
		"no permission to read": {
			status: lacks(granting("Role", "web"), granting("Role", "secret")), name: "alice", code: 5, problem: "is forbidden",
		},
		"none to look there": {
			status: lacks(granting("Role", "web"), granting("Role", "hidden")), name: "alice", code: 5, problem: "is forbidden",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := lackingServer(t, map[string]any{
				ofProduction + "roles/hidden": inProduction("Role", "hidden", nil), ofRBAC + "namespaces/shop-alice/roles/hidden": forbidden,
				ofProduction + "roles/secret": forbidden, ofProduction + "roles/web": inProduction("Role", "web", nil),
			}, tt.status)
			out, notes, code, err := s.call(t.Context(), "missing", tt.name, "-n", "teams")
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("ends with %d: %v", code, err)
			}
			if out != "" || notes != tt.note {
				t.Errorf("printed %q, noted %q", out, notes)
			}
		})
	}
}
