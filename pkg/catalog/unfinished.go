// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// byCatalog is the index of SyncStatuses by the uid of the catalog that they are about.
const byCatalog = "catalog/subject"

// followRecords has a namespace looked at when somebody or something has to go on with a record of a catalog of it.
func (c *catalogs) followRecords() error {
	informer := c.informers.Configbutler().V1alpha1().SyncStatuses().Informer()
	if err := informer.AddIndexers(cache.Indexers{byCatalog: catalogOf, byState: stateOf}); err != nil {
		return fmt.Errorf("follow the SyncStatuses: %w", err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.recordChanged, UpdateFunc: updates(c.recordChanged, c.recordGone), DeleteFunc: c.recordGone,
	})
	if err != nil {
		return fmt.Errorf("follow the SyncStatuses: %w", err)
	}
	return nil
}

// catalogOf is the catalog of a record.
func catalogOf(object any) ([]string, error) {
	if record, ok := object.(*v1alpha1.SyncStatus); ok && record.Spec.Type == v1alpha1.SyncTypeCatalog {
		return []string{string(record.Spec.Subject.UID)}, nil
	}
	return nil, nil
}

func (c *catalogs) recordChanged(object any) {
	record, ok := object.(*v1alpha1.SyncStatus)
	if !ok || record.Spec.Type != v1alpha1.SyncTypeCatalog {
		return
	}
	if catalog := c.subject(record); catalog != nil {
		c.queue.Add(catalog.Spec.SourceNamespace)
	}
}

// subject is the catalog that a record is about, nil when it is gone.
func (c *catalogs) subject(record *v1alpha1.SyncStatus) *v1alpha1.AppCatalog {
	of := record.Spec.Subject
	catalog, err := c.informers.Configbutler().V1alpha1().AppCatalogs().Lister().AppCatalogs(record.Namespace).Get(of.Name)
	if err != nil || catalog.UID != of.UID {
		return nil
	}
	return catalog
}

func (c *catalogs) recordGone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if record, ok := object.(*v1alpha1.SyncStatus); ok {
		c.unseen.gone(record)
	}
}

// records are those of a catalog that the cache has.
func (c *catalogs) records(catalog *v1alpha1.AppCatalog) []*v1alpha1.SyncStatus {
	// The index is there since before the informer was started.
	objects, _ := c.informers.Configbutler().V1alpha1().SyncStatuses().Informer().GetIndexer().ByIndex(byCatalog, string(catalog.UID))
	var out []*v1alpha1.SyncStatus
	for _, object := range objects {
		if record, ok := object.(*v1alpha1.SyncStatus); ok {
			out = append(out, record)
		}
	}
	return out
}

// unfinished are the records of a catalog that the server has to go on with, or somebody else, the oldest first. Those of
// them that tell of a revision which the catalog does not show were interrupted.
func (c *catalogs) unfinished(catalog *v1alpha1.AppCatalog) []*v1alpha1.SyncStatus {
	out := slices.DeleteFunc(c.records(catalog), func(record *v1alpha1.SyncStatus) bool {
		return !failed(record) && (!begunToApply(record) || over(record, catalog))
	})
	slices.SortFunc(out, compareDetection)
	return out
}

func compareDetection(a, b *v1alpha1.SyncStatus) int {
	return a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time)
}

// failed says whether what a record tells of could not be done yet.
func failed(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return false
}

// outdated says whether another edit has been taken over since the one that a record is about.
func outdated(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	batch := record.Spec.Batch
	return syncstatus.IsEdit(batch) && batch != syncstatus.EditBatch(catalog.Status.ObservedGeneration)
}

// trouble is why a catalog does not offer what its spec wants: what its editor may not read any more, or what failed last and is
// not settled, whether or not somebody wants to hear of it.
func (c *catalogs) trouble(catalog *v1alpha1.AppCatalog) verdict {
	if lost := c.lost.get(catalog.UID); !lost.ok() {
		return lost
	}
	out := c.keeper.obstacles.get(catalog.UID)
	records := c.unseen.over(c.records(catalog), catalog.UID)
	slices.SortFunc(records, compareDetection)
	for _, record := range records {
		if (failed(record) || putAside(record, catalog)) && record.Status.Error != nil && !outdated(record, catalog) {
			out = verdict{record.Status.Error.Reason, record.Status.Error.Message}
		}
	}
	return out
}

// putAside says whether somebody has dismissed a record while the catalog could not follow its spec, and it has not been able
// to since: nothing has been put right by that. It can when everything has been compared without a failure.
func putAside(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	since := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionStalled)
	return record.Status.State == v1alpha1.SyncStateDismissed && record.Status.ResolvedAt != nil &&
		since != nil && !since.LastTransitionTime.After(record.Status.ResolvedAt.Time)
}
