// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const (
	// byCatalog is the index of environments by the namespace and name of their catalogs.
	byCatalog = "environment/catalog"
	// byTarget is the index of environments by the namespaces that they are built in.
	byTarget = "environment/target"
	// bySubject is the index of the SyncStatuses that have not come to their end by the uid of the environment they are about.
	bySubject = "environment/subject"
	// bySource is the index of catalogs by the namespace that they follow.
	bySource = "environment/source"
)

// listen follows the objects of users, and the namespaces of the cluster.
func (c *environments) listen() error {
	for kind, follow := range map[string]func() error{
		"Environments": c.followEnvironments, "AppCatalogs": c.followCatalogs,
		"SyncStatuses": c.followRecords, "SyncPolicy": c.followPolicy,
	} {
		if err := follow(); err != nil {
			return fmt.Errorf("follow the %s: %w", kind, err)
		}
	}
	c.shared.Namespaces.Subscribe(func(change watch.NamespaceChange) {
		of := cmp.Or(change.After, change.Before)
		c.lookAt(byTarget, of.Name)
		// Whether a catalog admits the environments of a namespace can be a matter of its labels.
		c.lookAt(cache.NamespaceIndex, of.Name)
	})
	return nil
}

// heard calls changed for each object that has come, changed or gone.
func heard[O any](changed func(O)) cache.ResourceEventHandler {
	tell := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if of, ok := object.(O); ok {
			changed(of)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, after any) { tell(after) }, DeleteFunc: tell}
}

// by is an index by one word of each object; objects without one are not in it.
func by[O any](word func(O) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if of, ok := object.(O); ok {
			if found := word(of); found != "" {
				return []string{found}, nil
			}
		}
		return nil, nil
	}
}

func (c *environments) followEnvironments() error {
	informer := c.informers.Configbutler().V1alpha1().Environments().Informer()
	if err := informer.AddIndexers(cache.Indexers{byCatalog: by(catalogOf), byTarget: by(targetOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(heard(func(e *v1alpha1.Environment) {
		c.queue.Add(nameOf(e))
		// Who comes and goes may be in the way of others.
		c.lookAt(byTarget, e.Spec.TargetNamespace)
	}))
	if err != nil {
		return err
	}
	if _, err = informer.AddEventHandler(c.followSources()); err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: c.events.conditions.Forget})
	return err
}

func (c *environments) followCatalogs() error {
	informer := c.informers.Configbutler().V1alpha1().AppCatalogs().Informer()
	if err := informer.AddIndexers(cache.Indexers{bySource: by(sourceOf)}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(c.followSources()); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(heard(func(catalog *v1alpha1.AppCatalog) {
		c.lookAt(byCatalog, catalog.Namespace+"/"+catalog.Name)
		c.lookAt(byTarget, catalog.Spec.SourceNamespace)
	}))
	return err
}

// followRecords follows the records of environments, which are kept for months: in the cache is only which there are, and their
// states.
func (c *environments) followRecords() error {
	informer := c.recordInformer()
	if err := informer.AddIndexers(cache.Indexers{bySubject: by(subjectOf)}); err != nil {
		return err
	}
	_, err := informer.AddEventHandler(heard(func(record *v1alpha1.SyncStatus) {
		if record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
			c.queue.Add(types.NamespacedName{Namespace: record.Namespace, Name: record.Spec.Subject.Name})
		}
	}))
	return err
}

// recordInformer returns the informer of SyncStatuses. Of the records of environments, it has the identity, the spec and the state.
func (c *environments) recordInformer() cache.SharedIndexInformer {
	return c.informers.Configbutler().V1alpha1().SyncStatuses().Informer()
}

// followPolicy looks at all environments when the settings change.
func (c *environments) followPolicy() error {
	return syncpolicy.Follow(c.informers.Configbutler().V1alpha1().SyncPolicies(), func() {
		c.lookAtAll()
		c.detector.PolicyChanged()
	})
}

// lookAt has the environments looked at that an index has under a word.
func (c *environments) lookAt(index, word string) {
	for _, e := range c.indexed(index, word) {
		c.queue.Add(nameOf(e))
	}
}

// indexed are the environments that an index has under a word.
func (c *environments) indexed(index, word string) []*v1alpha1.Environment {
	// The index is there since before the informer was started.
	objects, _ := c.informers.Configbutler().V1alpha1().Environments().Informer().GetIndexer().ByIndex(index, word)
	return as[*v1alpha1.Environment](objects)
}

func (c *environments) lookAtAll() {
	for _, e := range as[*v1alpha1.Environment](c.informers.Configbutler().V1alpha1().Environments().Informer().GetStore().List()) {
		c.queue.Add(nameOf(e))
	}
}

// as are objects of a cache by their type.
func as[O any](objects []any) []O {
	out := make([]O, 0, len(objects))
	for _, object := range objects {
		if of, ok := object.(O); ok {
			out = append(out, of)
		}
	}
	return out
}

func nameOf(e *v1alpha1.Environment) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

func catalogOf(e *v1alpha1.Environment) string {
	return cmp.Or(e.Spec.CatalogRef.Namespace, e.Namespace) + "/" + e.Spec.CatalogRef.Name
}

func targetOf(e *v1alpha1.Environment) string { return e.Spec.TargetNamespace }

func sourceOf(catalog *v1alpha1.AppCatalog) string { return catalog.Spec.SourceNamespace }

// subjectOf is the uid of the environment that a record is about, if something or somebody can still go on with it.
func subjectOf(record *v1alpha1.SyncStatus) string {
	if record.Spec.Subject.Kind != v1alpha1.SubjectEnvironment || syncstatus.Ended(record) {
		return ""
	}
	return string(record.Spec.Subject.UID)
}
