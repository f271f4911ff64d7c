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

// pageSize limits the memory that a list takes. A record has at most a few hundred KiB, and usually less than two.
const pageSize = 200

// version identifies one version of a record.
type version struct {
	namespace, name string
	uid             types.UID
	resourceVersion string
}

func versionOf(object metav1.Object) version {
	return version{object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()}
}

// scanResult is the result of a scan of all records.
type scanResult struct {
	// records is the number of all records.
	records int
	// expired are the expired records.
	expired []version
}

// scan finds the expired records among all records.
func (s *Sweeper) scan(ctx context.Context, retention v1alpha1.Retention, now time.Time) (scanResult, error) {
	subjects, err := s.subjects(ctx)
	if err != nil {
		return scanResult{}, err
	}
	collected := scan{retention: retention, now: now, subjects: subjects}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return s.process.Client.ConfigbutlerV1alpha1().SyncStatuses(metav1.NamespaceAll).List(ctx, options)
	}
	err = eachItem(ctx, list, func(obj runtime.Object) error {
		record, ok := obj.(*v1alpha1.SyncStatus)
		if !ok {
			return fmt.Errorf("got a %T", obj)
		}
		collected.add(record)
		return nil
	})
	collected.collectExpired()
	if err != nil {
		return scanResult{}, fmt.Errorf("listing SyncStatuses: %w", err)
	}
	return collected.result, nil
}

// subjects returns the uids of all catalogs and environments.
func (s *Sweeper) subjects(ctx context.Context) (sets.Set[types.UID], error) {
	api := s.process.Client.ConfigbutlerV1alpha1()
	uids := sets.New[types.UID]()
	for kind, list := range map[string]pager.ListPageFunc{
		"AppCatalogs": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.AppCatalogs(metav1.NamespaceAll).List(ctx, options)
		},
		"Environments": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.Environments(metav1.NamespaceAll).List(ctx, options)
		},
	} {
		err := eachItem(ctx, list, func(obj runtime.Object) error {
			subject, err := meta.Accessor(obj)
			if err == nil {
				uids.Insert(subject.GetUID())
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind, err)
		}
	}
	return uids, nil
}

// eachItem reads a list in pages. If the list expires meanwhile, it returns an error instead of reading the list again in one piece.
func eachItem(ctx context.Context, list pager.ListPageFunc, do func(runtime.Object) error) error {
	pages := pager.New(list)
	pages.PageSize, pages.PageBufferSize, pages.FullListIfExpired = pageSize, 1, false
	return pages.EachListItem(ctx, metav1.ListOptions{}, do)
}

// scan collects the records of one namespace at a time. Lists are sorted by namespace. The result would be correct without that, too:
// a record that has expired among some of the records of a subject has expired among all of them.
type scan struct {
	result    scanResult
	retention v1alpha1.Retention
	now       time.Time
	// subjects are the uids of the existing catalogs and environments.
	subjects sets.Set[types.UID]
	// living and orphans are the records of the namespace whose subject exists, and those whose subject was deleted.
	namespace       string
	living, orphans []*v1alpha1.SyncStatus
}

// add adds the fields of a record that decide when it expires.
func (c *scan) add(record *v1alpha1.SyncStatus) {
	if record.Namespace != c.namespace {
		c.collectExpired()
		c.namespace = record.Namespace
	}
	c.result.records++
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
	if !c.subjects.Has(record.Spec.Subject.UID) {
		c.orphans = append(c.orphans, outline)
		return
	}
	c.living = append(c.living, outline)
}

// collectExpired adds the expired records of the namespace to the result.
func (c *scan) collectExpired() {
	expired := append(syncstatus.Expired(c.living, c.retention, c.now), syncstatus.ExpiredOrphans(c.orphans, c.retention, c.now)...)
	for _, record := range expired {
		c.result.expired = append(c.result.expired, versionOf(record))
	}
	c.living, c.orphans = nil, nil
}
