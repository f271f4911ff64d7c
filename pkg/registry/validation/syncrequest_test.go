// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func TestRequestsAreForTheObjectInTheirPath(t *testing.T) {
	history := []configbutler.CatalogRevision{{Revision: 2}}
	requests := map[string]func(given string) field.ErrorList{
		"sync": func(given string) field.ErrorList {
			return validation.ValidateCatalogSync(&configbutler.CatalogSync{ObjectMeta: meta(given)}, "shop")
		},
		"rollback": func(given string) field.ErrorList {
			request := &configbutler.Rollback{ObjectMeta: meta(given), Spec: configbutler.RollbackSpec{Revision: 2}}
			return validation.ValidateRollback(request, "shop", history)
		},
		"dismiss": func(given string) field.ErrorList {
			return validation.ValidateDismissal(&configbutler.Dismissal{ObjectMeta: meta(given)}, "shop")
		},
		"retry": func(given string) field.ErrorList {
			return validation.ValidateRetry(&configbutler.Retry{ObjectMeta: meta(given)}, "shop")
		},
		"sync of an environment": func(given string) field.ErrorList {
			request := &configbutler.SyncRequest{ObjectMeta: meta(given), Spec: configbutler.SyncRequestSpec{Action: configbutler.SyncActionAll}}
			return validation.ValidateSyncRequest(request, "shop")
		},
		"undismiss": func(given string) field.ErrorList {
			return validation.ValidateUndismissal(&configbutler.Undismissal{ObjectMeta: meta(given)}, "shop")
		},
		"rediscover": func(given string) field.ErrorList {
			return validation.ValidateRediscovery(&configbutler.Rediscovery{ObjectMeta: meta(given)}, "shop")
		},
		"resolve": func(given string) field.ErrorList {
			choice := configbutler.ConflictChoice{Kind: configbutler.WorkloadJob, Name: "a"}
			request := &configbutler.ConflictResolution{
				ObjectMeta: meta(given), Spec: configbutler.ConflictResolutionSpec{Keep: []configbutler.ConflictChoice{choice}},
			}
			return validation.ValidateConflictResolution(request, "shop", []configbutler.WorkloadConflict{
				{Kind: choice.Kind, Name: choice.Name, Fields: []configbutler.FieldConflict{{Field: "/spec/suspend"}}},
			})
		},
	}
	for name, validate := range requests {
		t.Run(name, func(t *testing.T) {
			change[struct{}]{}.check(t, validate(""))
			change[struct{}]{}.check(t, validate("shop"))
			change[struct{}]{path: "metadata.name", says: "must be shop"}.check(t, validate("other"))
		})
	}
}

func TestRollback(t *testing.T) {
	history := []configbutler.CatalogRevision{{Revision: 7}, {Revision: 5}}
	for revision, want := range map[int64]change[struct{}]{
		7: {}, 5: {},
		0:  {path: "spec.revision", says: "Required"},
		6:  {path: "spec.revision", says: `supported values: "7", "5"`},
		-5: {path: "spec.revision", says: "supported values"},
	} {
		request := &configbutler.Rollback{Spec: configbutler.RollbackSpec{Revision: revision}}
		want.check(t, validation.ValidateRollback(request, "shop", history))
	}
	errs := validation.ValidateRollback(&configbutler.Rollback{Spec: configbutler.RollbackSpec{Revision: 1}}, "shop", nil)
	change[struct{}]{path: "spec.revision", says: "status.history is empty"}.check(t, errs)
}
