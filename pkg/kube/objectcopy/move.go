// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// Move returns what has no copy as a user would create it in the namespace of the target: a Role, RoleBinding, ClusterRoleBinding or
// PersistentVolumeClaim, which is left as it is. Source is the namespace that the target is made from, also for a ClusterRoleBinding.
// Bindings are about the named ServiceAccounts of the target and nobody else, and have a name that nobody else gives: what is applied
// replaces the subjects of a binding that has the name. Roles and claims keep their names, by which others refer to them. A claim is one
// of an empty volume. It fails on other kinds.
func (t Target) Move(object *unstructured.Unstructured, source string, accounts []string) (*unstructured.Unstructured, error) {
	content, err := manifest.Canonical(object)
	if err != nil {
		return nil, fmt.Errorf("moving %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	moved := content.DeepCopy()
	delete(moved.Object, "status")
	moved.Object["metadata"] = t.metadata(object, content)
	switch moved.GroupVersionKind().GroupKind().String() {
	case "Role." + rbacv1.GroupName:
	case "RoleBinding." + rbacv1.GroupName:
		t.bind(moved, source, accounts)
	case "ClusterRoleBinding." + rbacv1.GroupName:
		t.bind(moved, source, accounts)
		moved.SetNamespace("")
	case "PersistentVolumeClaim":
		emptied(moved)
	default:
		return nil, fmt.Errorf("moving %s %s/%s: no kind that is moved", object.GetKind(), object.GetNamespace(), object.GetName())
	}
	return moved, nil
}

// bind gives a binding a name of its own, and makes ServiceAccounts of the target its subjects.
func (t Target) bind(binding *unstructured.Unstructured, source string, accounts []string) {
	binding.SetName(t.bindingName(binding, source))
	subjects := make([]any, len(accounts))
	for i, account := range accounts {
		subjects[i] = map[string]any{"kind": rbacv1.ServiceAccountKind, "name": account, "namespace": t.Namespace}
	}
	binding.Object["subjects"] = subjects
}

// bindingName is the name of a binding in the target: that of the source's, the namespace, and a hash of all that tells bindings apart.
// It is the same each time. Without the hash, the bindings a of b-c and a-b of c would be one.
func (t Target) bindingName(binding *unstructured.Unstructured, source string) string {
	const digits = 8
	ref := mapOf(binding.Object["roleRef"])
	// None of them has a NUL in it.
	sum := sha256.Sum256(fmt.Append(nil, binding.GetKind(), "\x00", source, "\x00", t.Namespace, "\x00", binding.GetName(), "\x00",
		ref["apiGroup"], "\x00", ref["kind"], "\x00", ref["name"]))
	return binding.GetName() + "-" + t.Namespace + "-" + hex.EncodeToString(sum[:])[:digits]
}

// emptied takes out of a claim which volume it has, and what that began with.
func emptied(claim *unstructured.Unstructured) {
	spec := mapOf(claim.Object["spec"])
	for _, field := range [...]string{"volumeName", "dataSource", "dataSourceRef", "selector"} {
		delete(spec, field)
	}
	annotations := claim.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.kubernetes.io/") ||
			strings.HasPrefix(key, "volume.beta.kubernetes.io/")
	})
	if len(annotations) == 0 {
		annotations = nil
	}
	claim.SetAnnotations(annotations)
}
