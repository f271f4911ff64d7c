// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// records writes records like the API, with its validation.
type records struct{ stage *stage }

var internalScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

func (r *records) Write(_ context.Context, record runtime.Object) error {
	if err := r.stage.process.write(); err != nil {
		return err
	}
	switch record := record.DeepCopyObject().(type) {
	case *v1alpha1.CatalogWorkload:
		return r.store("catalogworkloads", record, nil)
	case *v1alpha1.SyncStatus:
		return r.store("syncstatuses", record, checkSyncStatus)
	default:
		return fmt.Errorf("%T is not a record", record)
	}
}

func (r *records) store(resource string, record metav1.Object, check func(record, old metav1.Object) error) error {
	gvr := v1alpha1.SchemeGroupVersion.WithResource(resource)
	object := record.(runtime.Object)
	old, err := r.stage.api.Tracker().Get(gvr, record.GetNamespace(), record.GetName())
	if apierrors.IsNotFound(err) {
		record.SetUID(types.UID("uid-of-" + record.GetName()))
		if check != nil {
			if err := check(record, nil); err != nil {
				return err
			}
		}
		return r.stage.api.Tracker().Create(gvr, object, record.GetNamespace())
	}
	if err != nil {
		return err
	}
	record.SetUID(old.(metav1.Object).GetUID())
	if check != nil {
		if err := check(record, old.(metav1.Object)); err != nil {
			return err
		}
	}
	return r.stage.api.Tracker().Update(gvr, object, record.GetNamespace())
}

func checkSyncStatus(record, old metav1.Object) error {
	converted, err := internalScheme.ConvertToVersion(record.(runtime.Object), configbutler.SchemeGroupVersion)
	if err != nil {
		return err
	}
	if old == nil {
		return validation.ValidateSyncStatus(converted.(*configbutler.SyncStatus)).ToAggregate()
	}
	before, err := internalScheme.ConvertToVersion(old.(runtime.Object), configbutler.SchemeGroupVersion)
	if err != nil {
		return err
	}
	after := converted.(*configbutler.SyncStatus)
	after.ResourceVersion, before.(*configbutler.SyncStatus).ResourceVersion = "1", "1"
	return validation.ValidateSyncStatusUpdate(after, before.(*configbutler.SyncStatus)).ToAggregate()
}
