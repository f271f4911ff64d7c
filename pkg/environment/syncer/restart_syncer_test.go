// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// runsFor returns a fixture with a real Syncer and objects in production, whose Deployments the catalog offers.
func (s *executorFixture) runsFor(objects ...string) *environmenttest.Cluster {
	s.Helper()
	cluster, catalog := environmenttest.NewCluster(s.T), environmenttest.Catalog()
	catalog.Status.Revision = 2
	cluster.Put(environmenttest.Object(s.T, "{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}"))
	for _, text := range objects {
		o := environmenttest.Object(s.T, text)
		o.SetNamespace(environmenttest.Production)
		cluster.Put(o)
		if o.GetKind() == "Deployment" {
			s.api.Put(environmenttest.Offer(s.T, catalog, o))
		}
	}
	s.api.Put(catalog)
	cluster.Answer(environmenttest.CountWrites(s.api.Process))
	limiter, kept := flowcontrol.NewFakeAlwaysRateLimiter(), copies.New(table.New(newKV(s.T, s.api.Process), "/test"), 10)
	runner := &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Client: cluster.Client(), Metadata: cluster.Metadata(), Mapper: cluster.Mapper(),
			Limiter: limiter, Concurrency: 1, Planner: environmenttest.Planner(), Copies: kept, Clock: s.clock,
			Rights: &environmenttest.Rights{},
		},
		Applier: &apply.Applier{
			Client: cluster.Client(), Mapper: cluster.Mapper(), Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: 1,
		},
		Copies: kept, Records: s.api, Dependencies: s.api.Client.ConfigbutlerV1alpha1(), Index: index.New(),
	}
	s.run = runner.Run
	return cluster
}

const webOfSettings = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: gone}}]}]}
`

// TestDeathOfARun has the process die at each write of a run and of its record: to the cluster, to the copies and to the API.
func TestDeathOfARun(t *testing.T) {
	begin := func(t *testing.T) (*executorFixture, *environmenttest.Cluster, *v1alpha1.SyncStatus) {
		s := newExecutorFixture(t)
		cluster := s.runsFor(webOfSettings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}")
		return s, cluster, s.begin(v1alpha1.SyncTypeEnvironment)
	}
	s, _, record := begin(t)
	want := s.mustDo(syncer.ModeSync, record).Status
	// The writes are three of the record, a ConfigMap, a Deployment, their copies, and the EnvironmentDependencies of two ConfigMaps.
	writes := s.api.Process.Writes()
	if want.State != failed || len(want.Failures) != 1 || len(want.ResourceSummaries) != 2 || writes != 3+2+1+2 {
		t.Fatalf("%d writes: %+v", writes, want)
	}
	for last := 1; last <= writes; last++ {
		t.Run(fmt.Sprintf("at write %d of %d", last, writes), func(t *testing.T) {
			s, cluster, record := begin(t)
			s.api.Process.Start(last, nil)
			if outcome, err := s.do(syncer.ModeSync, record); err == nil {
				t.Fatalf("the process did not die: %+v", outcome)
			}
			s.api.Process.Start(0, nil)
			got := s.mustDo(syncer.ModeSync, s.now(record.Name)).Status
			if names := cluster.Names(environmenttest.Target); len(names) != 2 {
				t.Errorf("objects of the target = %v", names)
			}
			got.Attempts, got.Progress = want.Attempts, want.Progress
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}
