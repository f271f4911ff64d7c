// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// checkConsent determines which Secrets the consent of the catalog's editor covers: those to which the workloads refer that the catalog
// last took from its source and that its spec still selects. The workloads of the plan can be others, after a rollback of the catalog
// or of the environment. The objects of a refresh depend on what the catalog offered when the environment was last synced.
//
// A requester who may read Secrets needs no consent. All Secrets are then copied with the requester's permission.
func (r *stateReading) checkConsent(ctx context.Context, catalog *v1alpha1.AppCatalog) (err error) {
	if !r.state.SecretsByConsent || r.state.Snapshot != nil || r.state.Denied.Has(secrets) {
		return nil
	}
	r.state.Consented, err = r.consented(ctx, catalog)
	if err != nil || r.request.Requester == nil || r.state.Consented == nil && r.state.Action != v1alpha1.SyncActionCluster {
		return err
	}
	permission := access.OfCopies(catalog)[v1alpha1.DependencySecret]
	why, withheld, err := r.reader.review(ctx, *r.request.Requester, permission)
	r.state.SecretsByConsent, r.state.Unshared = withheld, why
	return err
}

// consented returns the workloads that the consent covers, nil if these are the workloads of the plan.
func (r *stateReading) consented(ctx context.Context, of *v1alpha1.AppCatalog) ([]*unstructured.Unstructured, error) {
	taken, err := r.taken(ctx, of)
	if err != nil || taken == r.state.Revision && !editsWait(of) {
		return nil, err
	}
	key := fmt.Sprintf("consented %s %s %d", of.UID, of.ResourceVersion, taken)
	return shared(ctx, &r.reader.shared, r.since, key, func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return r.readConsented(ctx, of, taken)
	})
}

// taken returns the revision that a catalog last took from its source, 0 if that is not known.
func (r *stateReading) taken(ctx context.Context, of *v1alpha1.AppCatalog) (int64, error) {
	taken, err := r.reader.Revisions.Taken(ctx, of.UID, of.Status.Revision)
	if err != nil {
		return 0, fmt.Errorf("read revision %d of AppCatalog %s/%s: %w", of.Status.Revision, of.Namespace, of.Name, err)
	}
	if taken == 0 && of.Spec.PinnedRevision == nil {
		return of.Status.Revision, nil
	}
	return taken, nil
}

// editsWait reports whether a catalog can offer workloads that its spec no longer selects, because a pause or a pin delays edits.
func editsWait(of *v1alpha1.AppCatalog) bool {
	return of.Spec.PinnedRevision != nil || len(of.Status.PendingEdits) > 0 || of.Generation != of.Status.ObservedGeneration
}

// readConsented reads the workloads of a revision that the spec of a catalog still selects. Those that are not stored are left out: without
// the workload, it is not known to what it refers.
func (r *stateReading) readConsented(ctx context.Context, of *v1alpha1.AppCatalog, revision int64) ([]*unstructured.Unstructured, error) {
	workloads := []*unstructured.Unstructured{}
	records, err := r.storedOffers(ctx, of, revision)
	if err != nil {
		return nil, err
	}
	selection, err := capture.NewSelection(&of.Spec)
	if err != nil {
		return nil, fmt.Errorf("read what AppCatalog %s/%s selects: %w", of.Namespace, of.Name, err)
	}
	for _, record := range slices.SortedFunc(maps.Values(records), compareRecords) {
		if record.Manifest == nil {
			continue
		}
		captured, err := capture.Read(record.Manifest)
		if err != nil {
			return nil, fmt.Errorf("read %s %s of AppCatalog %s/%s: %w", record.Kind, record.Name, of.Namespace, of.Name, err)
		}
		if !selection.Stays(v1alpha1.WorkloadReference{Kind: record.Kind, Name: record.Name}, captured.Object) {
			continue
		}
		manifest, err := r.manifest(ctx, of, record)
		if err != nil {
			return nil, fmt.Errorf("read %s %s of AppCatalog %s/%s: %w", record.Kind, record.Name, of.Namespace, of.Name, err)
		}
		workloads = append(workloads, manifest.Object)
	}
	return workloads, nil
}

// storedOffers returns the workloads of a revision, none if it is not stored.
func (r *stateReading) storedOffers(ctx context.Context, of *v1alpha1.AppCatalog, revision int64) (offers, error) {
	if revision == 0 {
		return nil, nil
	}
	records, err := r.offersOf(ctx, of, revision)
	if errors.Is(err, ErrRevisionNotKept) {
		return nil, nil
	}
	return records, err
}
