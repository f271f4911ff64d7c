// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// sync is the subresource sync of an AppCatalog. It adds the request to the status of the catalog, from where the
// current or next leader processes it, and waits for a while until the leader has read the source.
func (c *catalogRequests) sync() *requestREST[*configbutler.CatalogSync] {
	return &requestREST[*configbutler.CatalogSync]{
		newRequest: func() *configbutler.CatalogSync { return &configbutler.CatalogSync{} },
		validate: func(_ context.Context, name string, request *configbutler.CatalogSync) error {
			return invalid("CatalogSync", name, validation.ValidateCatalogSync(request, name))
		},
		execute: c.executeSync,
	}
}

func (c *catalogRequests) executeSync(ctx context.Context, name string, request *configbutler.CatalogSync, dryRun []string) error {
	actor, err := requester(ctx)
	if err != nil {
		return err
	}
	pending := configbutler.PendingCatalogSync{
		ID: string(uuid.NewUUID()), Actor: actor, Time: metav1.NewTime(c.clock.Now().Truncate(time.Second)),
	}
	catalog, err := change(ctx, c.statuses, name, dryRun, func(catalog *configbutler.AppCatalog) error {
		return c.addRequest(catalog, pending)
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{
		Accepted: true, Message: fmt.Sprintf("Would read the namespace %s anew (dry run)", catalog.Spec.SourceNamespace),
	}
	if !dryrun.IsDryRun(dryRun) {
		request.Status.ID = pending.ID
		c.answerSync(ctx, catalog, pending.ID, &request.Status)
	}
	return nil
}

// addRequest adds a request to the pending ones of a catalog. It is rejected while changes of the source are held back,
// because nothing would be read.
func (c *catalogRequests) addRequest(catalog *configbutler.AppCatalog, request configbutler.PendingCatalogSync) error {
	if why := holdReason(catalog, c.clock.Now()); why != "" {
		return refused("appcatalogs", catalog.Name, why)
	}
	if n := len(catalog.Status.PendingSyncs); n >= v1alpha1.MaxPendingSyncs {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%d requests wait for this catalog; its conditions say why", n), requestRetrySeconds)
	}
	catalog.Status.PendingSyncs = append(catalog.Status.PendingSyncs, request)
	return nil
}

// answerSync waits for a while until a request is processed, and writes the outcome into the answer.
func (c *catalogRequests) answerSync(
	ctx context.Context, catalog *configbutler.AppCatalog, id string, answer *configbutler.RequestOutcome,
) {
	var over *configbutler.AppCatalog
	await(ctx, c.waitTimeout, c.statuses, catalog.Name, catalog.ResourceVersion, func(now *configbutler.AppCatalog) bool {
		if slices.ContainsFunc(now.Status.PendingSyncs, func(p configbutler.PendingCatalogSync) bool { return p.ID == id }) {
			return false
		}
		over = now
		return true
	})
	if over == nil {
		answer.Message = fmt.Sprintf("The request is accepted; until it has been carried out, "+
			"status.pendingSyncs of AppCatalog %s has it under the id %s",
			catalog.Name, id)
		return
	}
	answer.Message = fmt.Sprintf("The namespace %s has been read", catalog.Spec.SourceNamespace)
	why := holdReason(over, c.clock.Now())
	switch record := c.recordFor(ctx, catalog, over, id); {
	case record != nil:
		addRecords(answer, record)
	case why != "":
		answer.Message = "Nothing is recorded: meanwhile " + why
	default:
		answer.Message += ": nothing had changed that is not recorded already"
	}
}

// recordFor returns the record of a request, or else that of the batch that the request closed early, which made the
// catalog's newest revision. It returns nil if there is neither.
func (c *catalogRequests) recordFor(ctx context.Context, before, after *configbutler.AppCatalog, id string) *v1alpha1.SyncStatus {
	if record := c.recordOf(ctx, before, id); record != nil {
		return record
	}
	if after.Status.Revision <= before.Status.Revision {
		return nil
	}
	record, err := getRecord(ctx, c.records, after.Status.LatestSync)
	if err != nil {
		return nil // It may have been deleted.
	}
	return record
}
