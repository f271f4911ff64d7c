// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
)

// Names of the indexes of the informers' caches.
const (
	// bySource indexes catalogs by their source namespace.
	bySource = "catalog/source"
	// byTarget indexes environments by their target namespace.
	byTarget = "catalog/target"
	// byCatalog indexes SyncStatuses of catalogs by the UID of the catalog.
	byCatalog = "catalog/subject"
	// byState indexes SyncStatuses of catalogs by their state.
	byState = "catalog/state"
)

// lister reads from the caches of the informers. The indexes exist before the informers start, so lookups in them do not fail.
type lister struct {
	informers externalversions.SharedInformerFactory
}

// addIndexers adds the indexes that the lister uses. The informers must not have been started.
func (l *lister) addIndexers() error {
	api := l.informers.Configbutler().V1alpha1()
	for _, index := range []struct {
		informer cache.SharedIndexInformer
		indexers cache.Indexers
	}{
		{api.AppCatalogs().Informer(), cache.Indexers{bySource: sourceOf}},
		{api.SyncStatuses().Informer(), cache.Indexers{byCatalog: subjectUID, byState: stateOf}},
		{api.Environments().Informer(), cache.Indexers{byTarget: targetOf}},
	} {
		if err := index.informer.AddIndexers(index.indexers); err != nil {
			return fmt.Errorf("add indexes to an informer: %w", err)
		}
	}
	return nil
}

func sourceOf(object any) ([]string, error) {
	if catalog, ok := object.(*v1alpha1.AppCatalog); ok {
		return []string{catalog.Spec.SourceNamespace}, nil
	}
	return nil, nil
}

func targetOf(object any) ([]string, error) {
	if environment, ok := object.(*v1alpha1.Environment); ok {
		return []string{environment.Spec.TargetNamespace}, nil
	}
	return nil, nil
}

func subjectUID(object any) ([]string, error) {
	if record, ok := object.(*v1alpha1.SyncStatus); ok && record.Spec.Type == v1alpha1.SyncTypeCatalog {
		return []string{string(record.Spec.Subject.UID)}, nil
	}
	return nil, nil
}

func stateOf(object any) ([]string, error) {
	if record, ok := object.(*v1alpha1.SyncStatus); ok && record.Spec.Type == v1alpha1.SyncTypeCatalog {
		return []string{string(record.Status.State)}, nil
	}
	return nil, nil
}

// namespaces returns the source namespaces of all catalogs, also of those that are being deleted.
func (l *lister) namespaces() []string {
	return l.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer().ListIndexFuncValues(bySource)
}

// catalogs returns the catalogs of a source namespace that are not being deleted, sorted by namespace and name.
func (l *lister) catalogs(source string) []*v1alpha1.AppCatalog {
	indexer := l.informers.Configbutler().V1alpha1().AppCatalogs().Informer().GetIndexer()
	out := slices.DeleteFunc(indexed[*v1alpha1.AppCatalog](indexer, bySource, source), func(catalog *v1alpha1.AppCatalog) bool {
		return catalog.DeletionTimestamp != nil
	})
	slices.SortFunc(out, func(a, b *v1alpha1.AppCatalog) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// records returns the SyncStatuses of a catalog.
func (l *lister) records(catalog *v1alpha1.AppCatalog) []*v1alpha1.SyncStatus {
	indexer := l.informers.Configbutler().V1alpha1().SyncStatuses().Informer().GetIndexer()
	return indexed[*v1alpha1.SyncStatus](indexer, byCatalog, string(catalog.UID))
}

// recordsIn returns the SyncStatuses of all catalogs that are in a state.
func (l *lister) recordsIn(state v1alpha1.SyncState) []*v1alpha1.SyncStatus {
	indexer := l.informers.Configbutler().V1alpha1().SyncStatuses().Informer().GetIndexer()
	return indexed[*v1alpha1.SyncStatus](indexer, byState, string(state))
}

// subject returns the catalog of a record, nil if it no longer exists.
func (l *lister) subject(record *v1alpha1.SyncStatus) *v1alpha1.AppCatalog {
	of := record.Spec.Subject
	catalog, err := l.informers.Configbutler().V1alpha1().AppCatalogs().Lister().AppCatalogs(record.Namespace).Get(of.Name)
	if err != nil || catalog.UID != of.UID {
		return nil
	}
	return catalog
}

// builder returns the environment whose target is a source namespace, if it existed before the catalogs of that namespace. It returns nil
// if there is none.
func (l *lister) builder(namespace string) *v1alpha1.Environment {
	api := l.informers.Configbutler().V1alpha1()
	environments := indexed[*v1alpha1.Environment](api.Environments().Informer().GetIndexer(), byTarget, namespace)
	if len(environments) == 0 {
		return nil
	}
	catalogs := indexed[*v1alpha1.AppCatalog](api.AppCatalogs().Informer().GetIndexer(), bySource, namespace)
	cluster := placement.Cluster{Environments: environments, Catalogs: catalogs}
	return cluster.Builder(namespace)
}

// policy returns the settings that all catalogs share.
func (l *lister) policy() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(l.informers.Configbutler().V1alpha1().SyncPolicies().Lister())
}

// batchWindow returns how long changes are collected in a batch.
func (l *lister) batchWindow() time.Duration { return l.policy().BatchWindow.Duration }

// indexed returns the objects of an index with a value. The cache of an informer contains objects of one type only.
func indexed[O any](indexer cache.Indexer, index, value string) []O {
	objects, _ := indexer.ByIndex(index, value)
	out := make([]O, 0, len(objects))
	for _, object := range objects {
		if o, ok := object.(O); ok {
			out = append(out, o)
		}
	}
	return out
}
