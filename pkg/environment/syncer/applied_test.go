// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// TestApplied has an environment that has applied all of revision 1 and a part of revision 2.
func TestApplied(t *testing.T) {
	for name, tt := range map[string]struct {
		revision int64
		action   v1alpha1.SyncAction
		// applied are the expected images of the applied workloads, offered those of the offered workloads.
		applied, offered string
	}{
		"a revision that it had":                 {revision: 1, action: v1alpha1.SyncActionAll, applied: "1: web:applied", offered: "1:"},
		"by the catalog alone":                   {revision: 1, action: v1alpha1.SyncActionCatalog, applied: "1: web:applied", offered: "1:"},
		"with what only refreshes":               {revision: 1, action: v1alpha1.SyncActionCluster, applied: "1:", offered: "1: web:1"},
		"a revision that it had not as a whole":  {revision: 2, action: v1alpha1.SyncActionAll, applied: "2:", offered: "2: web:2"},
		"the one that the catalog offers, as is": {action: v1alpha1.SyncActionAll, applied: "3:", offered: "3: web:3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newReaderFixture(t, environmenttest.Object(t, webWithAccount))
			s.remember(1, s.offers(1, "web:1"))
			s.remember(2, s.offers(2, "web:2"))
			fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, "shop.deployment.web")
			s.api.Put(s.offers(3, "web:3"))
			s.catalog.Status.Revision = 3
			s.applied(1, "web:applied")
			s.applied(0, "web:2")
			request := s.request()
			request.Revision, request.Action = tt.revision, tt.action
			input := s.input(request)
			if got := images(input.Revision, input.Snapshot); got != tt.applied {
				t.Errorf("applied images = %s, want %s", got, tt.applied)
			}
			if got := images(input.Revision, input.Workloads); got != tt.offered {
				t.Errorf("offered images = %s, want %s", got, tt.offered)
			}
		})
	}
}

// applied records that the environment has applied web with an image at a revision.
func (s *readerFixture) applied(revision int64, image string) {
	s.T.Helper()
	object := of(s.T, image)
	object.SetNamespace(environmenttest.Target)
	err := s.copies.Put(s.T.Context(), copies.Environment{UID: s.environment.UID}, copies.Change{
		Revision: revision, Applied: []*unstructured.Unstructured{object},
	})
	if err != nil {
		s.T.Fatal(err)
	}
}
