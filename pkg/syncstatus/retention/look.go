// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/pager"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// pageSize bounds what is in memory of a list: a record has at most some hundred KiB, and mostly less than two.
const pageSize = 200

// version is a record as it was at some time.
type version struct {
	namespace, name string
	uid             types.UID
	resourceVersion string
}

func versionOf(object metav1.Object) version {
	return version{object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()}
}

// findings are what a look through all records has found.
type findings struct {
	// records is the number of all.
	records int
	// expired are those whose time is over.
	expired []version
}

// look looks through all records.
func (s *Sweeper) look(ctx context.Context, retention v1alpha1.Retention, now time.Time) (findings, error) {
	catalogs, err := s.catalogs(ctx)
	if err != nil {
		return findings{}, err
	}
	l := look{retention: retention, now: now, catalogs: catalogs}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return s.Client.ConfigbutlerV1alpha1().SyncStatuses(metav1.NamespaceAll).List(ctx, options)
	}
	err = eachItem(ctx, list, func(obj runtime.Object) error {
		record, ok := obj.(*v1alpha1.SyncStatus)
		if !ok {
			return fmt.Errorf("got a %T", obj)
		}
		l.add(record)
		return nil
	})
	l.judge()
	if err != nil {
		return findings{}, fmt.Errorf("listing SyncStatuses: %w", err)
	}
	return l.findings, nil
}

// catalogs are the uids of the catalogs that there are.
func (s *Sweeper) catalogs(ctx context.Context) (sets.Set[types.UID], error) {
	uids := sets.New[types.UID]()
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return s.Client.ConfigbutlerV1alpha1().AppCatalogs(metav1.NamespaceAll).List(ctx, options)
	}
	err := eachItem(ctx, list, func(obj runtime.Object) error {
		catalog, err := meta.Accessor(obj)
		if err == nil {
			uids.Insert(catalog.GetUID())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing AppCatalogs: %w", err)
	}
	return uids, nil
}

// eachItem reads a list in pages. A list that takes so long that it expires is not read anew in one piece.
func eachItem(ctx context.Context, list pager.ListPageFunc, do func(runtime.Object) error) error {
	pages := pager.New(list)
	pages.PageSize, pages.PageBufferSize, pages.FullListIfExpired = pageSize, 1, false
	return pages.EachListItem(ctx, metav1.ListOptions{}, do)
}

// look gathers the records of a namespace at a time. Lists come in the order of namespaces; if one did not, nothing would
// be wrong: what has expired among some of the records of a subject has expired among all.
type look struct {
	findings
	retention v1alpha1.Retention
	now       time.Time
	catalogs  sets.Set[types.UID]
	// living and orphans are the records of the namespace, by whether their subject is still there.
	namespace       string
	living, orphans []*v1alpha1.SyncStatus
}

// add takes in what of a record says when it goes.
func (l *look) add(record *v1alpha1.SyncStatus) {
	if record.Namespace != l.namespace {
		l.judge()
		l.namespace = record.Namespace
	}
	l.records++
	outline := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: record.Name, UID: record.UID, ResourceVersion: record.ResourceVersion,
		},
		Spec: v1alpha1.SyncStatusSpec{Type: record.Spec.Type, Subject: record.Spec.Subject},
		Status: v1alpha1.SyncRecord{
			State: record.Status.State, DetectedAt: record.Status.DetectedAt,
			StartedAt: record.Status.StartedAt, ResolvedAt: record.Status.ResolvedAt,
		},
	}
	if problem := record.Status.Error; problem != nil {
		outline.Status.Error = &v1alpha1.SyncError{At: problem.At}
	}
	if subject := record.Spec.Subject; subject.Kind == v1alpha1.SubjectAppCatalog && !l.catalogs.Has(subject.UID) {
		l.orphans = append(l.orphans, outline)
		return
	}
	l.living = append(l.living, outline)
}

// judge finds out which of the records that were gathered have expired.
func (l *look) judge() {
	expired := append(syncstatus.Expired(l.living, l.retention, l.now), syncstatus.ExpiredOrphans(l.orphans, l.retention, l.now)...)
	for _, record := range expired {
		l.expired = append(l.expired, versionOf(record))
	}
	l.living, l.orphans = nil, nil
}
