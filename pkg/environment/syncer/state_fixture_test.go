// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// readerFixture is a cluster, with a catalog and an environment.
type readerFixture struct {
	*testing.T
	*environmenttest.Cluster
	environment *v1alpha1.Environment
	catalog     *v1alpha1.AppCatalog
	// api has our own kinds. The catalog is put into it before each read.
	api       *fakeapi.API
	clock     *testkit.Clock
	copies    *copies.Copies
	revisions revisions
	rights    environmenttest.Rights
}

// revisions are the stored revisions of a catalog.
type revisions struct {
	offered map[int64]map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord
	// taken has the revision before each rollback that was taken from the source.
	taken map[int64]int64
}

func newRevisions() revisions {
	return revisions{map[int64]map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord{}, map[int64]int64{}}
}

func (r revisions) Offered(_ context.Context, _ types.UID, revision int64) (
	map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error,
) {
	return r.offered[revision], nil
}

func (r revisions) Taken(_ context.Context, _ types.UID, revision int64) (int64, error) {
	return r.taken[revision], nil
}

// newReaderFixture returns a fixture with objects in the source; the catalog offers the workloads among them.
func newReaderFixture(t *testing.T, objects ...*unstructured.Unstructured) *readerFixture {
	t.Helper()
	s := &readerFixture{
		T: t, Cluster: environmenttest.NewCluster(t), environment: environmenttest.Environment(), catalog: environmenttest.Catalog(),
		copies: copies.New(table.New(bolttest.NewKV(t), "/test"), 10), revisions: newRevisions(),
	}
	s.clock = testkit.NewClock(t)
	s.api = fakeapi.New(t, s.clock)
	for _, o := range objects {
		o.SetNamespace(environmenttest.Production)
		s.Put(o)
		if _, ok := capture.ReferenceTo(o); ok {
			s.api.Put(environmenttest.Offer(t, s.catalog, o))
		}
	}
	return s
}

func (s *readerFixture) request() syncer.Request {
	return syncer.Request{Environment: s.environment, Catalog: environmenttest.CatalogUID, Action: v1alpha1.SyncActionAll}
}

func (s *readerFixture) read(request syncer.Request) (plan.Input, error) {
	s.T.Helper()
	s.api.Put(s.catalog)
	return s.reader().Read(s.T.Context(), request)
}

// reader returns a reader that shares nothing with others.
func (s *readerFixture) reader() *syncer.StateReader {
	s.T.Helper()
	return &syncer.StateReader{
		Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Client: s.Client(), Metadata: s.Metadata(), Mapper: s.Mapper(),
		Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Concurrency: 4,
		Planner: environmenttest.Planner(), Copies: s.copies, Revisions: s.revisions,
		Clock: s.clock, Rights: &s.rights,
	}
}

// input returns the input of the plan of a request.
func (s *readerFixture) input(request syncer.Request) plan.Input {
	s.T.Helper()
	input, err := s.read(request)
	if err != nil {
		s.T.Fatal(err)
	}
	return input
}

// production returns objects of all kinds that production has.
func production(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "kube", "objectcopy", "testdata", "production", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, environmenttest.Object(t, string(text)))
	}
	return objects
}

func planOf(t *testing.T, input plan.Input) *plan.Plan {
	t.Helper()
	p, err := environmenttest.Planner().Plan(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns objects, as "ConfigMap settings", in order.
func names(objects []*unstructured.Unstructured) []string {
	list := []string{}
	for _, o := range objects {
		list = append(list, plan.KeyOf(o).String())
	}
	slices.Sort(list)
	return list
}
