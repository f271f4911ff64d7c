// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Revisions are what catalogs offered with their revisions, as far as it is kept.
type Revisions struct{ of revisions }

// NewRevisions returns those that the controller keeps in a store.
func NewRevisions(store *table.Store) *Revisions {
	return &Revisions{revisions{store.Table(revisionsTable)}}
}

// Offered returns what a catalog offered with a revision, by workload; nil if that is not kept. Manifests that were too large for
// a record are not among it.
func (r *Revisions) Offered(
	ctx context.Context, catalog types.UID, revision int64,
) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error) {
	return r.of.read(ctx, catalog, revision)
}

// Render returns what a catalog offers of a workload as it is in the source.
func Render(spec *v1alpha1.AppCatalogSpec, object *unstructured.Unstructured) (capture.Manifest, error) {
	rules, err := readRules(spec)
	if err != nil {
		return capture.Manifest{}, err
	}
	content, err := capture.Capture(object, rules.ignored)
	if err != nil {
		return capture.Manifest{}, err
	}
	return content.Patched(rules.patches)
}
