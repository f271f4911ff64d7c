// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// expectCatalogSync rejects a request based on an outdated record of the catalog: neither the newest nor the one of the
// pinned revision. It reads the catalog, because the environment's status can lag behind.
func (r *environmentRequests) expectCatalogSync(
	ctx context.Context, environment *configbutler.Environment, catalog *configbutler.AppCatalog, expected string,
) error {
	newest := catalog.Status.LatestSync
	if expected == "" || expected == newest {
		return nil
	}
	if pinned := environment.Spec.PinnedRevision; pinned != nil && expected == recordOfRevision(catalog, *pinned) {
		return nil
	}
	reason := fmt.Sprintf("spec.expectedCatalogSync is %s, and AppCatalog %s offers nothing yet", expected, catalog.Name)
	if newest != "" {
		reason = fmt.Sprintf("spec.expectedCatalogSync is %s, but what AppCatalog %s offers by now is %s at revision %d",
			expected, catalog.Name, r.summary(genericapirequest.WithNamespace(ctx, catalog.Namespace), newest), catalog.Status.Revision)
	}
	return refused("environments", environment.Name, reason)
}

// expectDependencySync rejects a request based on an outdated dependency record.
func (r *environmentRequests) expectDependencySync(ctx context.Context, environment *configbutler.Environment, expected string) error {
	newest := environment.Status.LatestDependencySync
	if expected == "" || expected == newest {
		return nil
	}
	if newest == "" {
		return refused("environments", environment.Name, fmt.Sprintf(
			"spec.expectedDependencySync is no longer open, and nothing else is: %s", r.summary(ctx, expected)))
	}
	return refused("environments", environment.Name, fmt.Sprintf(
		"spec.expectedDependencySync is %s, but what has changed by now is in %s", expected, r.summary(ctx, newest)))
}

// summary returns the name and the summary of a record in the namespace of ctx, as far as it can be read.
func (r *environmentRequests) summary(ctx context.Context, name string) string {
	stored, err := read[*configbutler.SyncStatus](ctx, r.records, name)
	if err != nil {
		return "SyncStatus " + name
	}
	record, err := versioned(stored)
	if err != nil {
		return "SyncStatus " + name
	}
	text := fmt.Sprintf("SyncStatus %s: %s", name, syncstatus.Summary(record))
	if changed := abbreviateList(changedNames(stored), int(stored.Status.WorkloadCount)); changed != "" {
		text += " (" + changed + ")"
	}
	return text
}
