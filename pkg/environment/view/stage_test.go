// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/copies"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/gather"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/run"
	"github.com/configbutler/slipstream/pkg/environment/view"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	versionedscheme "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: database}}]}]
`
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}"
	database = "{apiVersion: v1, kind: Secret, metadata: {name: database}, data: {password: aHVudGVyMg==}}"
	theSpace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}"
)

// stage is production, a catalog that offers web, and the environment alice, whose target is there.
type stage struct {
	*testing.T
	cluster     *environmenttest.Cluster
	api         *fake.Clientset
	environment *v1alpha1.Environment
	catalog     *v1alpha1.AppCatalog
	runner      *run.Runner
	planner     *view.Planner
	rights      environmenttest.Rights
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		T: t, cluster: environmenttest.NewCluster(t), api: fake.NewSimpleClientset(),
		environment: environmenttest.Environment(), catalog: environmenttest.Catalog(), planner: view.NewPlanner(),
	}
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	client, mapper := s.cluster.Client(), s.cluster.Mapper()
	kept := copies.New(table.New(bolttest.NewKV(t), "/test"), 10)
	s.runner = &run.Runner{
		Gatherer: &gather.Gatherer{
			Slipstream: s.api.ConfigbutlerV1alpha1(), Client: client, Metadata: s.cluster.Metadata(), Mapper: mapper,
			Limiter: limiter, Concurrency: 2, Planner: environmenttest.Planner(), Copies: kept, Revisions: noRevisions{},
			Clock: clocktesting.NewFakePassiveClock(metav1.Unix(1000, 0).Time), Rights: &s.rights,
		},
		Applier: &apply.Applier{Client: client, Mapper: mapper, Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: 2},
		Copies:  kept, Records: s, Dependencies: s.api.ConfigbutlerV1alpha1(), Index: index.New(),
	}
	s.planner.Runner = s.runner
	s.cluster.Put(environmenttest.Object(t, theSpace))
	s.put(settings, database)
	s.offer(web)
	return s
}

// noRevisions keep nothing of what a catalog offered before.
type noRevisions struct{}

func (noRevisions) Offered(context.Context, types.UID, int64) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error) {
	return nil, nil
}

// put has objects in production.
func (s *stage) put(texts ...string) {
	s.Helper()
	for _, text := range texts {
		o := environmenttest.Object(s.T, text)
		o.SetNamespace(environmenttest.Production)
		s.cluster.Put(o)
	}
}

// offer has the catalog offer a workload and nothing else.
func (s *stage) offer(text string) {
	s.Helper()
	o := environmenttest.Object(s.T, text)
	o.SetNamespace(environmenttest.Production)
	s.catalog.Status.Workloads = nil
	for _, object := range []runtime.Object{environmenttest.Offer(s.T, s.catalog, o), s.catalog} {
		if err := s.Write(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
}

// Write is how records are written.
func (s *stage) Write(_ context.Context, record runtime.Object) error {
	kinds, _, err := versionedscheme.Scheme.ObjectKinds(record)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	err = s.api.Tracker().Add(record)
	if apierrors.IsAlreadyExists(err) {
		return s.api.Tracker().Update(resource, record, environmenttest.Teams)
	}
	return err
}

// sync has the environment be what the catalog offers.
func (s *stage) sync() {
	s.Helper()
	jane := access.Requesting(&v1alpha1.AutomatedBy{Username: "jane"})
	result, err := s.runner.Run(s.Context(), run.Request{Request: gather.Request{
		Environment: s.environment, Action: v1alpha1.SyncActionAll, Requester: &jane,
	}})
	if err != nil || !result.Complete {
		s.Fatalf("%v: %+v", err, result)
	}
	s.environment.Status.AppliedRevision = result.Revision
	s.cluster.Told()
}

// wrote are the requests since the last time that have written something.
func (s *stage) wrote() []string {
	return slices.DeleteFunc(s.cluster.Told(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasPrefix(request, "dry ")
	})
}

// lines are what a plan shows of its changes. The label of the revision is none.
func lines(shown *v1alpha1.SyncPlan) []string {
	lines := []string{}
	for _, change := range shown.Changes {
		line := fmt.Sprintf("%s %s %s", change.ChangeType, change.Kind, change.Name)
		for _, field := range change.Fields {
			line += fmt.Sprintf(" %s %s -> %s", field.Field, ptr.Deref(field.Before, "?"), ptr.Deref(field.After, "?"))
		}
		lines = append(lines, strings.TrimSuffix(line+": "+change.Refusal, ": "))
	}
	return lines
}
