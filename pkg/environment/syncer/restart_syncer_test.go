// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// dependencies writes EnvironmentDependencies.
type dependencies struct{ *executorFixture }

func (d dependencies) Write(_ context.Context, record runtime.Object) error {
	if err := d.life.write(); err != nil {
		return err
	}
	return d.api.Tracker().Add(record)
}

// runsFor has the fixture's runs done as they are, in a cluster whose production has what is offered of it.
func (s *executorFixture) runsFor(objects ...string) *environmenttest.Cluster {
	s.Helper()
	cluster, catalog := environmenttest.NewCluster(s.T), environmenttest.Catalog()
	catalog.Status.Revision = 2
	cluster.Put(environmenttest.Object(s.T, "{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}"))
	offered := []runtime.Object{catalog}
	for _, text := range objects {
		o := environmenttest.Object(s.T, text)
		o.SetNamespace(environmenttest.Production)
		cluster.Put(o)
		if o.GetKind() == "Deployment" {
			offered = append(offered, environmenttest.Offer(s.T, catalog, o))
		}
	}
	for _, o := range offered {
		if err := s.api.Tracker().Add(o); err != nil {
			s.Fatal(err)
		}
	}
	cluster.Answer(func(request string) *metav1.Status {
		err := s.life.check()
		if strings.HasPrefix(request, "PATCH") && err == nil {
			err = s.life.write()
		}
		if err != nil {
			return environmenttest.Status(503, metav1.StatusReasonServiceUnavailable, err.Error())
		}
		return nil
	})
	limiter, kept := flowcontrol.NewFakeAlwaysRateLimiter(), copies.New(table.New(s.life.store(s.T), "/test"), 10)
	runner := &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: s.api.ConfigbutlerV1alpha1(), Client: cluster.Client(), Metadata: cluster.Metadata(), Mapper: cluster.Mapper(),
			Limiter: limiter, Concurrency: 1, Planner: environmenttest.Planner(), Copies: kept, Clock: s.clock,
			Rights: &environmenttest.Rights{},
		},
		Applier: &apply.Applier{
			Client: cluster.Client(), Mapper: cluster.Mapper(), Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: 1,
		},
		Copies: kept, Records: dependencies{s}, Dependencies: s.api.ConfigbutlerV1alpha1(), Index: index.New(),
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

// TestDeathOfARun ends the process at each write of a run and its record: of the cluster, of copies and of our own records.
func TestDeathOfARun(t *testing.T) {
	begin := func(t *testing.T) (*executorFixture, *environmenttest.Cluster, *v1alpha1.SyncStatus) {
		s := newExecutorFixture(t)
		cluster := s.runsFor(webOfSettings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}")
		return s, cluster, s.begin(v1alpha1.SyncTypeEnvironment)
	}
	s, _, record := begin(t)
	want := s.mustDo(syncer.ModeSync, record).Status
	// The record thrice, a ConfigMap and a Deployment, what is kept of them, and what is recorded of two ConfigMaps.
	writes := s.life.writes
	if want.State != failed || len(want.Failures) != 1 || len(want.ResourceSummaries) != 2 || writes != 3+2+1+2 {
		t.Fatalf("%d writes: %+v", writes, want)
	}
	for last := 1; last <= writes; last++ {
		t.Run(fmt.Sprintf("at write %d of %d", last, writes), func(t *testing.T) {
			s, cluster, record := begin(t)
			s.life.begin(last)
			if outcome, err := s.do(syncer.ModeSync, record); err == nil {
				t.Fatalf("it did not die: %+v", outcome)
			}
			s.life.begin(0)
			got := s.mustDo(syncer.ModeSync, s.now(record.Name)).Status
			if names := cluster.Names(environmenttest.Target); len(names) != 2 {
				t.Errorf("the target has %v", names)
			}
			got.Attempts, got.Progress = want.Attempts, want.Progress
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("it ends otherwise (-want +got):\n%s", diff)
			}
		})
	}
}
