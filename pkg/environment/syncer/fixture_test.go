// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

var (
	worker = environmenttest.Deployment("worker", "envFrom: [{configMapRef: {name: queue}}]")
	web    = environmenttest.Deployment("web", "envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: database}}]")
	report = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "@daily"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: report, image: "report:1"}]}}}}
`
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}"
	queue    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: queue}, data: {size: ten}}"
	database = "{apiVersion: v1, kind: Secret, metadata: {name: database}, data: {password: aHVudGVyMg==}}"
	theSpace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}"
)

// fixture has the clusters, the API and the store of runs. They outlive a process.
type fixture struct {
	*testing.T
	cluster     *environmenttest.Cluster
	api         *fakeapi.API
	kv          clientv3.KV
	environment *v1alpha1.Environment
	catalog     *v1alpha1.AppCatalog
	index       *index.Index
	clock       *testkit.Clock
	rights      environmenttest.Rights
	revisions   revisions
}

// newFixture returns a fixture with a target namespace, and two workloads in production that the catalog offers.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{
		T: t, cluster: environmenttest.NewCluster(t), index: index.New(),
		environment: environmenttest.Environment(), catalog: environmenttest.Catalog(), clock: testkit.NewClock(t),
		revisions: newRevisions(),
	}
	s.api = fakeapi.New(t, s.clock)
	s.kv = newKV(t, s.api.Process)
	s.cluster.Answer(environmenttest.CountWrites(s.api.Process))
	s.cluster.Put(environmenttest.Object(t, theSpace))
	s.put(settings, queue, database)
	s.offer(web, worker)
	return s
}

// newKV returns an empty store whose writes are writes of a process.
func newKV(t *testing.T, process *testkit.Process) clientv3.KV {
	return bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return process.Write(write.Commit) })
}

// put puts objects into production.
func (s *fixture) put(texts ...string) {
	s.Helper()
	for _, text := range texts {
		s.cluster.Put(s.object(text))
	}
}

func (s *fixture) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := environmenttest.Object(s.T, text)
	o.SetNamespace(environmenttest.Production)
	return o
}

// offer has the catalog offer exactly these workloads.
func (s *fixture) offer(texts ...string) {
	s.Helper()
	s.catalog.Status.Workloads = nil
	for _, text := range texts {
		s.api.Put(environmenttest.Offer(s.T, s.catalog, s.object(text)))
	}
	s.api.Put(s.catalog)
}

func (s *fixture) copies() *copies.Copies { return copies.New(table.New(s.kv, "/test"), 10) }

func (s *fixture) runner() *syncer.Syncer {
	s.Helper()
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	client, mapper, kept := s.cluster.Client(), s.cluster.Mapper(), s.copies()
	return &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Client: client, Metadata: s.cluster.Metadata(), Mapper: mapper,
			Limiter: limiter, Concurrency: 4, Planner: environmenttest.Planner(), Copies: kept, Revisions: s.revisions,
			Clock: s.clock, Rights: &s.rights,
		},
		Applier: &apply.Applier{Client: client, Mapper: mapper, Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: 4},
		Copies:  kept, Records: s.api, Dependencies: s.api.Client.ConfigbutlerV1alpha1(), Index: s.index,
	}
}

func (s *fixture) request() syncer.Request {
	jane := access.Requesting(&v1alpha1.AutomatedBy{Username: "jane"})
	return syncer.Request{Environment: s.environment, Catalog: environmenttest.CatalogUID, Action: v1alpha1.SyncActionAll, Requester: &jane}
}

// sync makes a run, which must be complete.
func (s *fixture) sync() syncer.Result {
	s.Helper()
	result, err := s.runner().Run(s.Context(), s.request())
	if err != nil || !result.Complete {
		s.Fatalf("%v: %+v", err, result)
	}
	return result
}

// state returns the objects, copies and records that runs leave, by name.
func (s *fixture) state() map[string]string {
	s.Helper()
	state := map[string]string{}
	for _, name := range s.cluster.Names(environmenttest.Target) {
		resource, name, _ := strings.Cut(name, "/")
		live := s.cluster.Live(resource, environmenttest.Target, name)
		live.SetUID("")
		live.SetResourceVersion("")
		owners := live.GetManagedFields()
		for i := range owners {
			owners[i].Time = nil
		}
		live.SetManagedFields(owners)
		state["live "+resource+"/"+name] = fmt.Sprint(live.Object)
	}
	applied, revision, err := s.copies().List(s.Context(), s.environment.UID)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range applied {
		state["copy "+o.GetKind()+" "+o.GetName()] = fmt.Sprint(revision, o.Object)
	}
	for name, record := range s.dependencies() {
		state["record "+name] = fmt.Sprint(record.Status)
	}
	return state
}

func (s *fixture) dependencies() map[string]v1alpha1.EnvironmentDependency {
	s.Helper()
	records := map[string]v1alpha1.EnvironmentDependency{}
	for _, record := range fakeapi.List[*v1alpha1.EnvironmentDependency](s.api, environmenttest.Teams) {
		records[record.Name] = *record
	}
	return records
}

// checkIndex checks that the index has what the records have.
func (s *fixture) checkIndex() {
	s.Helper()
	if differences := s.index.Rebuild(slices.Collect(maps.Values(s.dependencies())), s.index.Revision()); len(differences) > 0 {
		s.Errorf("the index differs from the records: %v", differences)
	}
}

// copied returns the applied revision and the names of the copies.
func (s *fixture) copied() string {
	s.Helper()
	applied, revision, err := s.copies().List(s.Context(), s.environment.UID)
	if err != nil {
		s.Fatal(err)
	}
	names := []string{fmt.Sprintf("%d:", revision)}
	for _, o := range applied {
		names = append(names, o.GetName())
	}
	return strings.Join(names, " ")
}

// appliedAt returns an object as it was applied at a revision.
func (s *fixture) appliedAt(revision int64, name string) string {
	s.Helper()
	applied, _, err := s.copies().At(s.Context(), s.environment.UID, revision)
	if err != nil {
		s.Fatal(err)
	}
	for _, o := range applied {
		if o.GetName() == name {
			return fmt.Sprint(o.Object)
		}
	}
	return ""
}

// written returns the requests that write, and the dry runs among them.
func written(requests []string) (writes, dry []string) {
	for _, request := range requests {
		switch {
		case strings.HasPrefix(request, "dry "):
			dry = append(dry, request)
		case !strings.HasPrefix(request, "GET "):
			writes = append(writes, request)
		}
	}
	return writes, dry
}

// lines returns what was written.
func lines(result syncer.Result) []string {
	var out []string
	for _, summary := range result.Written {
		out = append(out, fmt.Sprintf("%s %s %s", summary.ChangeType, summary.Type, summary.Name))
	}
	return out
}
