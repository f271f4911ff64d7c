// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// catalogRequests implements the request subresources of AppCatalogs.
type catalogRequests struct {
	// catalogs updates the spec of AppCatalogs, statuses their status, and records reads SyncStatuses.
	catalogs, statuses, records *genericregistry.Store
	clock                       clock.PassiveClock
	waitTimeout                 time.Duration
}

// recordOf returns the SyncStatus of a batch of a catalog. It returns nil if there is none or it cannot be read: the
// request is executed all the same.
func (c *catalogRequests) recordOf(ctx context.Context, catalog *configbutler.AppCatalog, batch string) *v1alpha1.SyncStatus {
	spec := v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeCatalog, Batch: batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: catalog.Name, UID: catalog.UID},
	}
	record, _, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) { return getRecord(ctx, c.records, name) })
	if err != nil {
		return nil
	}
	return record
}

// getRecord reads a SyncStatus.
func getRecord(ctx context.Context, records rest.Getter, name string) (*v1alpha1.SyncStatus, error) {
	stored, err := read[*configbutler.SyncStatus](ctx, records, name)
	if err != nil {
		return nil, err
	}
	return versioned(stored)
}

// addRecords adds records with their state to the outcome of a request.
func addRecords(answer *configbutler.RequestOutcome, records ...*v1alpha1.SyncStatus) {
	for _, record := range records {
		answer.SyncStatuses = append(answer.SyncStatuses, record.Name)
		answer.Message += fmt.Sprintf("; SyncStatus %s: %s", record.Name, syncstatus.Summary(record))
	}
}

// holdReason returns why changes of a catalog's source are not processed, with the command that ends that. It is empty
// if they are processed.
func holdReason(catalog *configbutler.AppCatalog, now time.Time) string {
	switch spec := &catalog.Spec; {
	case catalog.DeletionTimestamp != nil:
		return "it is being deleted"
	case spec.PinnedRevision != nil:
		return fmt.Sprintf("changes of the source wait, because its spec.pinnedRevision is %d; to go forward: %s",
			*spec.PinnedRevision, clearCommand("appcatalog", catalog, "pinnedRevision"))
	case spec.PauseUntil != nil && spec.PauseUntil.After(now):
		return fmt.Sprintf("changes of the source wait until %s, which is its spec.pauseUntil; to end that: %s",
			spec.PauseUntil.UTC().Format(time.RFC3339), clearCommand("appcatalog", catalog, "pauseUntil"))
	}
	return ""
}

// clearCommand returns the kubectl command that clears a field of an object's spec.
func clearCommand(kind string, of metav1.Object, field string) string {
	return fmt.Sprintf(`kubectl patch %s %s -n %s --type=merge -p '{"spec":{"%s":null}}'`, kind, of.GetName(), of.GetNamespace(), field)
}

// versioned converts a record to v1alpha1. The result shares data with the given record.
func versioned(record *configbutler.SyncStatus) (*v1alpha1.SyncStatus, error) {
	out := &v1alpha1.SyncStatus{}
	if err := v1alpha1.Convert_configbutler_SyncStatus_To_v1alpha1_SyncStatus(record, out, nil); err != nil {
		return nil, fmt.Errorf("converting SyncStatus %s/%s: %w", record.Namespace, record.Name, err)
	}
	return out, nil
}
