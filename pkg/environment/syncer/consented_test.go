// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// keep stores a revision that offers workloads.
func (s *fixture) keep(revision int64, texts ...string) {
	s.Helper()
	s.revisions.offered[revision] = map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord{}
	for _, text := range texts {
		record := environmenttest.Offer(s.T, s.catalog.DeepCopy(), s.object(text)).Status
		s.revisions.offered[revision][v1alpha1.WorkloadReference{Kind: record.Kind, Name: record.Name}] = &record
	}
}

// rollBack has a catalog offer revision 1 again, in which web refers to a Secret, after it has taken revision 2 from its source.
func (s *fixture) rollBack(second ...string) {
	s.Helper()
	environmenttest.Share(s.catalog)
	s.catalog.Spec.WorkloadSelector = &metav1.LabelSelector{}
	s.keep(1, web, worker)
	s.keep(2, second...)
	s.keep(3, web, worker)
	s.revisions.taken = map[int64]int64{1: 1, 2: 2, 3: 2}
	s.catalog.Spec.PinnedRevision, s.catalog.Status.Revision = new(int64(1)), 3
	s.offer(web, worker)
}

// TestConsentOfRollbacks syncs a new environment for a user who may not read Secrets. A rollback requires no permission to read the source,
// so it shares no Secret that the catalog did not share before.
func TestConsentOfRollbacks(t *testing.T) {
	onlyWorker := []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}}
	for name, tt := range map[string]struct {
		do       func(*fixture)
		revision int64
		// permitted is set if the user may read Secrets.
		permitted, shared bool
	}{
		"no rollback":              {do: func(*fixture) {}, shared: true},
		"of what was shared":       {do: func(s *fixture) { s.rollBack(web) }, shared: true},
		"of a workload taken away": {do: func(s *fixture) { s.rollBack(worker) }},
		"of a reference taken away": {do: func(s *fixture) {
			s.rollBack(worker, strings.ReplaceAll(web, ", {secretRef: {name: database}}", ""))
		}},
		"for a user who may read it": {do: func(s *fixture) { s.rollBack(worker) }, permitted: true, shared: true},
		"that has ended, and the source waits": {do: func(s *fixture) {
			s.rollBack(worker)
			s.catalog.Spec.PinnedRevision = nil
		}},
		"with nothing known of before": {do: func(s *fixture) {
			s.rollBack(web)
			clear(s.revisions.taken)
		}},
		"with nothing stored of before": {do: func(s *fixture) {
			s.rollBack(web)
			delete(s.revisions.offered, 2)
		}},
		"with an edit that waits for its end": {do: func(s *fixture) {
			s.rollBack(web)
			s.catalog.Spec.WorkloadSelector, s.catalog.Spec.Workloads = nil, onlyWorker
		}},
		"of the environment": {do: func(s *fixture) {
			s.rollBack(worker)
			s.catalog.Spec.PinnedRevision, s.catalog.Status.Revision = nil, 2
			s.offer(worker)
		}, revision: 1},
		"an edit that waits for the end of a pause": {do: func(s *fixture) {
			s.catalog.Spec.Workloads = onlyWorker
			s.catalog.Status.PendingEdits = []v1alpha1.CatalogEdit{{Generation: 2, Actor: "eve"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			environmenttest.Share(s.catalog)
			tt.do(s)
			s.api.Put(s.catalog)
			if !tt.permitted {
				s.rights.Lose(`user "jane": get secrets production`)
			}
			request := s.request()
			request.Revision = tt.revision
			result, err := s.runner().Run(t.Context(), request)
			if err != nil || !result.Complete || (s.password() != "") != tt.shared || s.cluster.Live("deployments", environmenttest.Target, "web") == nil {
				t.Errorf("%v: password of the copy = %q, %+v", err, s.password(), result)
			}
			if tt.shared != (len(result.Failures) == 0) {
				t.Fatalf("failures = %+v", result.Failures)
			}
			const want = `what it last took from its source does not refer to it, and user "jane" may not get secrets`
			if !tt.shared && (result.Failures[0].Reason != v1alpha1.ReasonPermissionLost || !strings.Contains(result.Failures[0].Message, want)) {
				t.Errorf("failures = %+v", result.Failures)
			}
			s.checkIndex()
		})
	}
}
