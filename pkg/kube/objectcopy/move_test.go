// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

func TestWhatHasNoCopyIsMoved(t *testing.T) {
	const (
		rbac  = "apiVersion: rbac.authorization.k8s.io/v1, "
		about = "labels: {app: shop, argocd.argoproj.io/instance: shop}, uid: 1-2, resourceVersion: '7'"
		kept  = "labels: {app: shop}"
	)
	tests := map[string]struct{ source, want string }{
		"a Role": {
			"{" + rbac + "kind: Role, metadata: {name: web, namespace: shop, " + about +
				"}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}",
			"{" + rbac + "kind: Role, metadata: {name: web, namespace: dev, " + kept +
				"}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]}",
		},
		"a RoleBinding, without its other subjects": {
			"{" + rbac + "kind: RoleBinding, metadata: {name: web, namespace: shop, " + about +
				"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}, " +
				"subjects: [{kind: ServiceAccount, name: web, namespace: shop}, {kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}]}",
			"{" + rbac + "kind: RoleBinding, metadata: {name: web-dev-77099412, namespace: dev, " + kept +
				"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}, " +
				"subjects: [{kind: ServiceAccount, name: web, namespace: dev}]}",
		},
		"a ClusterRoleBinding, beside that of the source": {
			"{" + rbac + "kind: ClusterRoleBinding, metadata: {name: web, " + about +
				"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, " +
				"subjects: [{kind: ServiceAccount, name: web, namespace: shop}]}",
			"{" + rbac + "kind: ClusterRoleBinding, metadata: {name: web-dev-a07046bf, " + kept +
				"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, " +
				"subjects: [{kind: ServiceAccount, name: web, namespace: dev}]}",
		},
		"a claim, without its volume": {
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, " + about +
				", annotations: {pv.kubernetes.io/bind-completed: 'yes', " +
				"volume.kubernetes.io/storage-provisioner: disks, note: kept}}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, " +
				"volumeName: pv-1, " +
				"dataSource: {kind: PersistentVolumeClaim, name: seed}, resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: dev, " + kept + ", annotations: {note: kept}}, " +
				"spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}",
		},
	}
	target := objectcopy.Target{Namespace: "dev", Marks: objectcopy.DefaultMarks()}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			source := object(t, test.source)
			before := source.DeepCopy()
			moved, err := target.Move(source, "shop", []string{"web"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, test.want), moved); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if diff := cmp.Diff(before, source); diff != "" {
				t.Errorf("the source was changed:\n%s", diff)
			}
		})
	}
	if _, err := target.Move(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}"), "shop", nil); err == nil ||
		!strings.Contains(err.Error(), "no kind that is moved") {
		t.Errorf("a Secret: %v", err)
	}
}

// TestNamesOfBindings are the same each time, and no two bindings have one.
func TestNamesOfBindings(t *testing.T) {
	named := func(kind, name, role, source, target string) string {
		t.Helper()
		binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: "+kind+", metadata: {name: "+name+"}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+role+"}}")
		moved, err := objectcopy.Target{Namespace: target}.Move(binding, source, []string{"web"})
		if err != nil {
			t.Fatal(err)
		}
		return moved.GetName()
	}
	const binding = "RoleBinding"
	seen := map[string]bool{}
	for _, of := range [][5]string{
		{binding, "a", "view", "shop", "b-c"}, {binding, "a-b", "view", "shop", "c"}, {binding, "a", "edit", "shop", "b-c"},
		{binding, "a", "view", "mall", "b-c"}, {"ClusterRoleBinding", "a", "view", "shop", "b-c"},
	} {
		name := named(of[0], of[1], of[2], of[3], of[4])
		if seen[name] {
			t.Errorf("%v: the name %s is taken", of, name)
		}
		seen[name] = true
		if again := named(of[0], of[1], of[2], of[3], of[4]); again != name {
			t.Errorf("%v: %s, and then %s", of, name, again)
		}
	}
}
