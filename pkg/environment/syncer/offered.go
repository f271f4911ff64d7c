// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// ErrRevisionNotKept is returned if the content of a catalog revision is no longer stored.
var ErrRevisionNotKept = errors.New("what was offered is not kept")

type offers map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord

// offered reads the workloads of the revision, sorted by kind and name.
func (r *stateReading) offered(ctx context.Context, of *v1alpha1.AppCatalog) ([]*unstructured.Unstructured, error) {
	key := fmt.Sprintf("offered %s %d %d", of.UID, of.Generation, r.state.Revision)
	return shared(ctx, &r.reader.shared, r.since, key, func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return r.readOffered(ctx, of)
	})
}

func (r *stateReading) readOffered(ctx context.Context, of *v1alpha1.AppCatalog) ([]*unstructured.Unstructured, error) {
	records, err := r.offersOf(ctx, of, r.state.Revision)
	if err != nil {
		return nil, err
	}
	var workloads []*unstructured.Unstructured
	for _, record := range slices.SortedFunc(maps.Values(records), compareRecords) {
		if record.Hash == "" {
			continue // The source never had this workload.
		}
		manifest, err := r.manifest(ctx, of, record)
		if err != nil {
			return nil, fmt.Errorf("read %s %s of AppCatalog %s/%s: %w", record.Kind, record.Name, of.Namespace, of.Name, err)
		}
		workloads = append(workloads, manifest.Object)
	}
	return workloads, nil
}

func compareRecords(a, b *v1alpha1.CatalogWorkloadRecord) int {
	return slices.Compare([]string{string(a.Kind), a.Name}, []string{string(b.Kind), b.Name})
}

// offersOf returns the workloads of a revision of a catalog.
func (r *stateReading) offersOf(ctx context.Context, of *v1alpha1.AppCatalog, revision int64) (offers, error) {
	if revision == of.Status.Revision {
		return r.current(ctx, of)
	}
	return r.kept(ctx, of, revision)
}

// kept returns the workloads of a stored revision.
func (r *stateReading) kept(ctx context.Context, of *v1alpha1.AppCatalog, revision int64) (offers, error) {
	records, err := r.reader.Revisions.Offered(ctx, of.UID, revision)
	if err != nil {
		return nil, fmt.Errorf("read revision %d of AppCatalog %s/%s: %w", revision, of.Namespace, of.Name, err)
	}
	if records == nil {
		return nil, fmt.Errorf("%w: revision %d of AppCatalog %s/%s", ErrRevisionNotKept, revision, of.Namespace, of.Name)
	}
	return records, nil
}

// before reads the workloads of a Branch at its applied revision, because patches can hide what the catalog has changed since.
// Revisions and manifests that are not stored are left out.
func (r *stateReading) before(ctx context.Context, of *v1alpha1.AppCatalog) error {
	spec, applied := &r.state.Environment.Spec, r.state.Environment.Status.AppliedRevision
	if spec.Type != v1alpha1.EnvironmentBranch || len(spec.Patches) == 0 || applied == 0 || applied == r.state.Revision {
		return nil
	}
	records, err := r.reader.Revisions.Offered(ctx, of.UID, applied)
	if err != nil {
		return fmt.Errorf("read revision %d of AppCatalog %s/%s: %w", applied, of.Namespace, of.Name, err)
	}
	for _, workload := range spec.BranchWorkloads {
		record := records[workload]
		if record == nil || record.Manifest == nil {
			continue
		}
		manifest, err := r.manifest(ctx, of, record)
		if err != nil {
			return fmt.Errorf("read %s %s of AppCatalog %s/%s: %w", record.Kind, record.Name, of.Namespace, of.Name, err)
		}
		r.state.Previous = append(r.state.Previous, manifest.Object)
	}
	return nil
}

// current returns the workloads of the current revision. CatalogWorkloads can be one revision ahead of the catalog; in that case it
// returns the stored revision.
func (r *stateReading) current(ctx context.Context, of *v1alpha1.AppCatalog) (offers, error) {
	records, err := r.shown(ctx, of)
	if err != nil {
		return nil, err
	}
	offered := offers{}
	for _, entry := range of.Status.Workloads {
		workload := v1alpha1.WorkloadReference{Kind: entry.Kind, Name: entry.Name}
		record := records[workload]
		if entry.Hash != "" && (record == nil || record.Hash != entry.Hash) {
			return r.kept(ctx, of, of.Status.Revision)
		}
		if record != nil {
			offered[workload] = record
		}
	}
	return offered, nil
}

// shown returns the CatalogWorkloads of the catalog.
func (r *stateReading) shown(ctx context.Context, of *v1alpha1.AppCatalog) (offers, error) {
	list, err := r.reader.Slipstream.CatalogWorkloads(of.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelCatalog: of.Name}).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list CatalogWorkloads in %s: %w", of.Namespace, err)
	}
	records := offers{}
	for i := range list.Items {
		if record := &list.Items[i].Status; metav1.IsControlledBy(&list.Items[i], of) {
			records[v1alpha1.WorkloadReference{Kind: record.Kind, Name: record.Name}] = record
		}
	}
	return records, nil
}

// manifest returns the manifest of a workload. A workload that is too large for its record is read from the source.
func (r *stateReading) manifest(
	ctx context.Context, of *v1alpha1.AppCatalog, record *v1alpha1.CatalogWorkloadRecord,
) (capture.Manifest, error) {
	switch {
	case record.Rendered != nil:
		return capture.Read(record.Rendered)
	case record.Manifest != nil:
		return capture.Read(record.Manifest)
	}
	resource := v1alpha1.WorkloadResources()[record.Kind]
	key := plan.Key{Name: record.Name}
	key.Group, key.Kind = resource.Group, string(record.Kind)
	object, err := r.get(ctx, of.Spec.SourceNamespace, key)
	if err != nil {
		return capture.Manifest{}, err
	}
	if object == nil {
		return capture.Manifest{}, fmt.Errorf("it is too large to be kept, and %s does not have it any more", of.Spec.SourceNamespace)
	}
	offered, err := capture.Render(&of.Spec, object)
	if err == nil && offered.Hash != record.Hash {
		err = fmt.Errorf("it is too large to be kept, and in %s it is another by now", of.Spec.SourceNamespace)
	}
	return offered, err
}
