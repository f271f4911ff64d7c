// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capture answers what a catalog takes of its source: which workloads (Selection), and of each of them what
// (Capture). It holds no state and asks nobody.
//
// What a catalog takes of a workload is what pkg/kube/manifest writes of it, which leaves out what the cluster adds and what is
// true in the source alone (uid, owners, marks of GitOps tools), without what the catalog ignores. Anything else is content,
// and a change of it is a change of the workload.
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

// Manifest is the content of a workload, in the form in which a catalog keeps it.
type Manifest struct {
	// Object is the content. It may share parts with the object that it was captured from, and is for reading only.
	Object *unstructured.Unstructured
	// Hash is 64 hexadecimal digits, the same for the same content. It is that of Raw, and has no key: whoever may read
	// it in a record may read the content beside it.
	Hash string
	// Raw is Object as JSON; nil when that has more bytes than a record holds (v1alpha1.MaxManifestBytes).
	Raw *runtime.RawExtension
}

// Capture returns what a catalog takes of an object as it is in the cluster. The object is not changed. It fails on what
// no API server returns: an object without apiVersion or kind, or with values that JSON does not have.
func Capture(object *unstructured.Unstructured, ignored ignore.Rules) (Manifest, error) {
	// Fields are ignored first, because managedFields say whose they are.
	content, err := manifest.Canonical(ignored.Without(object))
	if err != nil {
		return Manifest{}, fmt.Errorf("capturing %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return of(content)
}

// Patched returns the manifest with patches laid over it. Its Hash is the same when they change nothing.
func (m Manifest) Patched(patches patch.Patches) (Manifest, error) {
	patched, err := patches.Apply(m.Object)
	if err != nil {
		return Manifest{}, err
	}
	return of(patched)
}

// Read returns the manifest that a record holds.
func Read(raw *runtime.RawExtension) (Manifest, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return Manifest{}, fmt.Errorf("reading a captured manifest: %w", err)
	}
	return of(object)
}

func of(content *unstructured.Unstructured) (Manifest, error) {
	// The keys of maps come in order, so that the same content has the same bytes.
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
