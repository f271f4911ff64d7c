// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func catalogWorkload() *configbutler.CatalogWorkload {
	return &configbutler.CatalogWorkload{
		ObjectMeta: meta("shop.statefulset.db.main"),
		Status: configbutler.CatalogWorkloadRecord{
			Kind: configbutler.WorkloadStatefulSet, Name: "db.main", Revision: 3,
			Manifest: &runtime.RawExtension{Raw: []byte(`{"kind":"StatefulSet"}`)},
			Rendered: &runtime.RawExtension{Raw: []byte(`{"kind":"StatefulSet"}`)},
		},
	}
}

func TestCatalogWorkload(t *testing.T) {
	type rec = *configbutler.CatalogWorkload
	large := &runtime.RawExtension{Raw: bytes.Repeat([]byte("1"), v1alpha1.MaxManifestBytes+1)}
	checkChanges(t, catalogWorkload, validation.ValidateCatalogWorkload, validation.ValidateCatalogWorkloadUpdate, []change[rec]{
		{name: "without a patch", do: func(r rec) { r.Status.Rendered = nil }},
		{name: "too large to be kept", do: func(r rec) { r.Status.Manifest, r.Status.Rendered = nil, nil }},
		{name: "the largest", do: func(r rec) { r.Status.Manifest = &runtime.RawExtension{Raw: large.Raw[1:]} }},
		{
			name: "another workload", do: func(r rec) { r.Status.Name = "db" },
			path: "metadata.name", says: "must be CATALOG.statefulset.db, by the workload",
		},
		{
			name: "another kind", do: func(r rec) { r.Status.Kind = "Pod" },
			path: "status.kind", says: `"Deployment"`,
		},
		{
			name: "no workload", do: func(r rec) { r.Status.Name = "" },
			path: "status.name", says: "Required",
		},
		{
			name: "a negative revision", do: func(r rec) { r.Status.Revision = -1 },
			path: "status.revision", says: "greater than or equal to 0",
		},
		{
			name: "a manifest that is too large", do: func(r rec) { r.Status.Manifest = large },
			path: "status.manifest", says: "524288 bytes",
		},
		{
			name: "a patched manifest that is too large", do: func(r rec) { r.Status.Rendered = large },
			path: "status.rendered", says: "524288 bytes",
		},
		{
			name: "patched without a manifest", do: func(r rec) { r.Status.Manifest = nil },
			path: "status.rendered", says: "absent without the manifest",
		},
	})
}
