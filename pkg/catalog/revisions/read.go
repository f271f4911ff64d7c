// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Offered returns the workloads that a catalog offered with a revision, or nil if the revision is not stored. A workload
// whose manifest was larger than v1alpha1.MaxManifestBytes has none.
func (s *Store) Offered(
	ctx context.Context, catalog types.UID, revision int64,
) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error) {
	heads, err := s.heads(ctx, catalog, sets.New(revision))
	found, exists := heads[revision]
	if err != nil || !exists {
		return nil, err
	}
	out := map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord{}
	for _, workload := range found.Workloads {
		record := workload.Record.DeepCopy()
		if err := s.readManifests(ctx, catalog, record, workload); err != nil {
			return nil, fmt.Errorf("read %s %s of revision %d: %w", record.Kind, record.Name, revision, err)
		}
		out[v1alpha1.WorkloadReference{Kind: record.Kind, Name: record.Name}] = record
	}
	return out, nil
}

// Taken returns the latest revision, up to the given one, that a catalog took from its source as a whole: the given one, unless it is a
// rollback, or follows one that has not ended. It returns 0 if the given one is not stored.
func (s *Store) Taken(ctx context.Context, catalog types.UID, revision int64) (int64, error) {
	heads, err := s.heads(ctx, catalog, sets.New(revision))
	found, exists := heads[revision]
	if err != nil || !exists {
		return 0, err
	}
	return cmp.Or(found.Taken, revision), nil
}

// BeforeRollback returns the workloads that a catalog last took from its source, if a revision is a rollback; nil otherwise.
func (s *Store) BeforeRollback(
	ctx context.Context, catalog types.UID, revision int64,
) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error) {
	taken, err := s.Taken(ctx, catalog, revision)
	if err != nil || taken == 0 || taken == revision {
		return nil, err
	}
	return s.Offered(ctx, catalog, taken)
}

// readManifests sets the manifests of a record: all that it had, or none if one of them is not stored.
func (s *Store) readManifests(ctx context.Context, catalog types.UID, record *v1alpha1.CatalogWorkloadRecord, from offer) error {
	for _, part := range []struct {
		key  manifestKey
		into **runtime.RawExtension
	}{{from.Manifest, &record.Manifest}, {from.Rendered, &record.Rendered}} {
		if part.key == "" {
			continue
		}
		raw, exists, err := s.table.Get(ctx, manifestPrefix(catalog)+string(part.key))
		if err != nil {
			return err
		}
		if !exists {
			record.Manifest, record.Rendered = nil, nil
			return nil
		}
		*part.into = &runtime.RawExtension{Raw: raw}
	}
	return nil
}
