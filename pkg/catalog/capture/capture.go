// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capture selects the workloads of a source namespace that a catalog holds (Selection), and computes their captured content
// (Capture). Its functions are pure.
//
// The content of a workload is the canonical form of pkg/kube/manifest without the fields that the catalog ignores. The canonical form
// lacks fields that the cluster adds or that are valid in the source only (uid, owners, annotations of GitOps tools). A change of the
// content, and nothing else, is a change of the workload.
package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// Manifest is the content of a workload, in the form in which a catalog stores it.
type Manifest struct {
	// Object is the content. It must not be modified, because it may share parts with the object that it was captured from.
	Object *unstructured.Unstructured
	// Hash is the SHA-256 of the JSON of Object in 64 hexadecimal digits. It is not keyed: a user who is allowed to read it in a record is
	// also allowed to read the content.
	Hash string
	// Raw is Object as JSON. It is nil if that is larger than v1alpha1.MaxManifestBytes.
	Raw *runtime.RawExtension
}

// Capture returns the content of an object from the cluster, without the ignored fields. The object is not modified. Capture fails for
// objects that no API server returns: those without apiVersion or kind, or with values that JSON cannot express.
func Capture(object *unstructured.Unstructured, ignored ignore.Rules) (Manifest, error) {
	// Ignored fields are removed first, because managedFields, which the canonical form lacks, have their owners.
	content, err := manifest.Canonical(ignored.Without(object))
	if err != nil {
		return Manifest{}, fmt.Errorf("capturing %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return of(content)
}

// Patched returns the manifest with patches applied. Its Hash is the same if they change nothing.
func (m Manifest) Patched(patches patch.Patches) (Manifest, error) {
	patched, err := patches.Apply(m.Object)
	if err != nil {
		return Manifest{}, err
	}
	return of(patched)
}

// Read returns the manifest of a record.
func Read(raw *runtime.RawExtension) (Manifest, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return Manifest{}, fmt.Errorf("reading a captured manifest: %w", err)
	}
	return of(object)
}

func of(content *unstructured.Unstructured) (Manifest, error) {
	// Marshal sorts the keys of maps, so the same content has the same bytes.
	raw, err := json.Marshal(content.Object)
	if err != nil {
		return Manifest{}, fmt.Errorf("writing the manifest of %s %s/%s: %w", content.GetKind(), content.GetNamespace(), content.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	out := Manifest{Object: content, Hash: hex.EncodeToString(sum[:])}
	if len(raw) <= v1alpha1.MaxManifestBytes {
		out.Raw = &runtime.RawExtension{Raw: raw}
	}
	return out, nil
}
