// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

// object identifies an object in which sinks may find something.
type object struct{ kind, namespace, name string }

// The kinds of observed objects.
const (
	kindEnvironment = string(v1alpha1.SubjectEnvironment)
	kindCatalog     = string(v1alpha1.SubjectAppCatalog)
	kindRecord      = "SyncStatus"
	kindDestination = "GitDestination"
	kindPipeline    = "SyncPipeline"
)

// String returns the object as rows of ledgers have it.
func (o object) String() string { return o.kind + "/" + o.namespace + "/" + o.name }

// parseObject is the inverse of String.
func parseObject(text string) object {
	kind, rest, _ := strings.Cut(text, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	return object{kind, namespace, name}
}

// subjectInformers returns the informers of the observed kinds.
func (s *sinks) subjectInformers() map[string]cache.SharedIndexInformer {
	api := s.informers.Configbutler().V1alpha1()
	return map[string]cache.SharedIndexInformer{
		kindEnvironment: api.Environments().Informer(), kindCatalog: api.AppCatalogs().Informer(), kindRecord: api.SyncStatuses().Informer(),
		kindDestination: api.GitDestinations().Informer(), kindPipeline: api.SyncPipelines().Informer(),
	}
}

// listenToSubjects adds event handlers for the observed objects.
func (s *sinks) listenToSubjects() error {
	for kind, informer := range s.subjectInformers() {
		enqueue := func(changed any) { s.enqueueSubject(kind, changed) }
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) }, DeleteFunc: enqueue,
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	return nil
}

// enqueueSubject enqueues an object that was created, updated or deleted, unless there is no sink.
func (s *sinks) enqueueSubject(kind string, changed any) {
	if tombstone, ok := changed.(cache.DeletedFinalStateUnknown); ok {
		changed = tombstone.Obj
	}
	if meta, ok := changed.(metav1.Object); ok && s.hasSinks() {
		s.subjects.Add(object{kind, meta.GetNamespace(), meta.GetName()})
	}
}

// hasSinks reports whether there are sinks. Objects that change while there are none are observed when there is one.
func (s *sinks) hasSinks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// observeAll enqueues all objects that a selection can select.
func (s *sinks) observeAll(selected *selection) {
	for kind := range s.subjectInformers() {
		if selected.selectsKind(kind) {
			s.enqueueSubjects(kind, selected.namespaces)
		}
	}
}

// enqueueSubjects enqueues the objects of a kind in some namespaces.
func (s *sinks) enqueueSubjects(kind string, namespaces func(string) bool) {
	for _, found := range s.subjectInformers()[kind].GetStore().List() {
		if meta, ok := found.(metav1.Object); ok && namespaces(meta.GetNamespace()) {
			s.enqueueSubject(kind, found)
		}
	}
}

// observeKnown enqueues the objects in the ledger of a sink: some may have been deleted while no process led.
func (s *sinks) observeKnown(of *sink) {
	for _, known := range of.queue.knownObjects() {
		s.subjects.Add(parseObject(known))
	}
}

// observe has all sinks collect what is found in an object.
func (s *sinks) observe(ctx context.Context, o object) (again time.Time, err error) {
	found, of, err := s.find(ctx, o)
	if apierrors.IsNotFound(err) {
		found, err = observe.Findings{Deleted: true, State: "deleted"}, nil
	}
	if err != nil {
		return again, fmt.Errorf("observe %s: %w", o, err)
	}
	if s.policy().Suspend.CatalogNotices {
		found = withoutPrompts(found)
	}
	for _, sink := range s.current() {
		sink.queue.observe(o.String(), of, found)
	}
	return again, nil
}

// withoutPrompts returns findings without changes that wait for a decision. Those of which sinks were notified have not ended.
func withoutPrompts(found observe.Findings) observe.Findings {
	kept := found.Found
	found.Found = nil
	for _, f := range kept {
		if f.Notification.Event == v1alpha1.NotifyPrompted {
			found.Unknown = append(found.Unknown, f.Notification.DedupeKey)
			continue
		}
		found.Found = append(found.Found, f)
	}
	return found
}

// find returns what is found in an object, and the labels of its subject. The error is NotFound if the object does not exist.
func (s *sinks) find(ctx context.Context, o object) (observe.Findings, labels.Set, error) {
	api := s.informers.Configbutler().V1alpha1()
	switch o.kind {
	case kindEnvironment:
		environment, err := api.Environments().Lister().Environments(o.namespace).Get(o.name)
		if err != nil {
			return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
		}
		offered, err := s.offered(ctx, environment)
		return observe.Environment(environment, offered), environment.Labels, err
	case kindCatalog:
		catalog, err := api.AppCatalogs().Lister().AppCatalogs(o.namespace).Get(o.name)
		if err != nil {
			return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
		}
		return observe.Catalog(catalog), catalog.Labels, nil
	case kindDestination:
		destination, err := api.GitDestinations().Lister().GitDestinations(o.namespace).Get(o.name)
		if err != nil {
			return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
		}
		return observe.Destination(destination), destination.Labels, nil
	case kindPipeline:
		pipeline, err := api.SyncPipelines().Lister().Get(o.name)
		if err != nil {
			return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
		}
		return observe.Pipeline(pipeline), pipeline.Labels, nil
	}
	return s.findInRecord(ctx, o)
}

// findInRecord returns what is found in a SyncStatus, and the labels of its subject. The cache has only the state of some records, so that one
// of which a sink may have to be notified is read from the API.
func (s *sinks) findInRecord(ctx context.Context, o object) (observe.Findings, labels.Set, error) {
	cached, err := s.informers.Configbutler().V1alpha1().SyncStatuses().Lister().SyncStatuses(o.namespace).Get(o.name)
	if err != nil {
		return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
	}
	if !s.needRecord(o, cached) {
		return observe.Findings{}, nil, nil
	}
	record, err := s.shared.Client.ConfigbutlerV1alpha1().SyncStatuses(o.namespace).Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return observe.Findings{}, nil, err //nolint:wrapcheck // the caller does
	}
	environment, of := s.subjectOf(record)
	return observe.Record(record, environment), of, nil
}

// needRecord reports whether a sink may have to be notified of a record: it has a finding in it, or there may be one that is new.
func (s *sinks) needRecord(o object, cached *v1alpha1.SyncStatus) bool {
	key, event := observe.EndOfRecord(cached)
	for _, sink := range s.current() {
		if sink.queue.knowsLasting(o.String()) {
			return true
		}
		if event != "" && sink.queue.awaits(event, key, cached.Status.ResolvedAt) {
			return true
		}
	}
	return event == "" && !observe.IsSilent(cached)
}

// subjectOf returns the environment of a record, nil if it has none, and the labels of its subject.
func (s *sinks) subjectOf(record *v1alpha1.SyncStatus) (*v1alpha1.Environment, labels.Set) {
	api := s.informers.Configbutler().V1alpha1()
	name := record.Spec.Subject.Name
	if record.Spec.Subject.Kind == v1alpha1.SubjectAppCatalog {
		if catalog, err := api.AppCatalogs().Lister().AppCatalogs(record.Namespace).Get(name); err == nil {
			return nil, catalog.Labels
		}
		return nil, nil
	}
	if environment, err := api.Environments().Lister().Environments(record.Namespace).Get(name); err == nil {
		return environment, environment.Labels
	}
	return nil, nil
}

// offered returns the records of what an environment can take.
func (s *sinks) offered(ctx context.Context, e *v1alpha1.Environment) (offered observe.Offered, err error) {
	catalogNamespace := e.Spec.CatalogRef.Namespace
	if catalogNamespace == "" {
		catalogNamespace = e.Namespace
	}
	if !observe.IsPrompting(e) {
		return offered, nil
	}
	if e.Status.LatestCatalogSync != "" && e.Status.LatestRevision > e.Status.AppliedRevision {
		if offered.Catalog, err = s.record(ctx, catalogNamespace, e.Status.LatestCatalogSync); err != nil {
			return offered, err
		}
	}
	if e.Status.LatestDependencySync != "" {
		offered.Dependencies, err = s.record(ctx, e.Namespace, e.Status.LatestDependencySync)
	}
	return offered, err
}

// record reads a record; nil if it does not exist.
func (s *sinks) record(ctx context.Context, namespace, name string) (*v1alpha1.SyncStatus, error) {
	record, err := s.shared.Client.ConfigbutlerV1alpha1().SyncStatuses(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read SyncStatus %s/%s: %w", namespace, name, err)
	}
	return record, nil
}
