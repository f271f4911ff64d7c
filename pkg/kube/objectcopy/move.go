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

// Move returns an object of a kind that Copy omits, as a user would create it in the target's namespace: a Role,
// RoleBinding, ClusterRoleBinding or PersistentVolumeClaim. The given object is unchanged. Source is the namespace that
// the target is made from, also for a ClusterRoleBinding.
//
// The subjects of a binding are replaced by the given ServiceAccounts of the target. Its name is unique, because
// applying it replaces the subjects of any binding of that name. Roles and claims keep their names, since other objects
// refer to them. A claim requests an empty volume. Move fails on other kinds.
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
		emptyClaim(moved)
	default:
		return nil, fmt.Errorf("moving %s %s/%s: no kind that is moved", object.GetKind(), object.GetNamespace(), object.GetName())
	}
	return moved, nil
}

// bind renames a binding and replaces its subjects by ServiceAccounts of the target.
func (t Target) bind(binding *unstructured.Unstructured, source string, accounts []string) {
	binding.SetName(t.bindingName(binding, source))
	subjects := make([]any, len(accounts))
	for i, account := range accounts {
		subjects[i] = map[string]any{"kind": rbacv1.ServiceAccountKind, "name": account, "namespace": t.Namespace}
	}
	binding.Object["subjects"] = subjects
}

// bindingName returns the name of a binding in the target: its name in the source, the namespace, and a hash of
// everything that distinguishes bindings. It is deterministic. Without the hash, the binding a of namespace b-c and a-b
// of c would collide.
func (t Target) bindingName(binding *unstructured.Unstructured, source string) string {
	const digits = 8
	ref := mapOf(binding.Object["roleRef"])
	// NUL separates the parts: none of them can contain it.
	sum := sha256.Sum256(fmt.Append(nil, binding.GetKind(), "\x00", source, "\x00", t.Namespace, "\x00", binding.GetName(), "\x00",
		ref["apiGroup"], "\x00", ref["kind"], "\x00", ref["name"]))
	return binding.GetName() + "-" + t.Namespace + "-" + hex.EncodeToString(sum[:])[:digits]
}

// emptyClaim removes the volume and the data source of a claim.
func emptyClaim(claim *unstructured.Unstructured) {
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
