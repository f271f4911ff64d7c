// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func record() *configbutler.GitDestinationStatus {
	return &configbutler.GitDestinationStatus{
		ObjectMeta: meta("destination"),
		Status: configbutler.GitDestinationRecord{
			Watches: []configbutler.ResourceTypeWatch{{
				ResourceType: configbutler.ResourceType{Version: "v1", Resource: "configmaps"},
				State:        configbutler.WatchStateWatching,
			}},
		},
	}
}

func TestGitDestinationStatus(t *testing.T) {
	type rec = *configbutler.GitDestinationStatus
	checkChanges(t, record, validation.ValidateGitDestinationStatus, validation.ValidateGitDestinationStatusUpdate, []change[rec]{
		{name: "more objects", do: func(r rec) { r.Status.Objects = 1 }},
		{
			name: "a negative count", do: func(r rec) { r.Status.OrphansHeld = -1 },
			path: "status.orphansHeld", says: "greater than or equal to 0",
		},
		{
			name: "a negative count of authors", do: func(r rec) { r.Status.Attribution.ManagedFields = -1 },
			path: "status.attribution.managedFields", says: "greater than or equal to 0",
		},
		{
			name: "a negative count of objects of a type", do: func(r rec) { r.Status.Watches[0].Objects = -1 },
			path: "status.watches[0].objects", says: "greater than or equal to 0",
		},
		{
			name: "a type without a resource", do: func(r rec) { r.Status.Watches[0].Resource = "" },
			path: "status.watches[0].resource", says: "deployments",
		},
		{
			name: "an unknown state", do: func(r rec) { r.Status.Watches[0].State = "Sleeping" },
			path: "status.watches[0].state", says: `"Listing", "Watching", "Failing"`,
		},
		{
			name: "a type twice", do: func(r rec) { r.Status.Watches = append(r.Status.Watches, r.Status.Watches[0]) },
			path: "status.watches[1]", says: "Duplicate",
		},
	})
}
