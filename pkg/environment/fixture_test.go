// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

func TestMain(m *testing.M) {
	// The transport of the test's cluster keeps idle connections for a while.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

var (
	noon       = testkit.Noon
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

var (
	worker    = environmenttest.Deployment("worker", "")
	web       = environmenttest.Deployment("web", "envFrom: [{configMapRef: {name: settings}}]")
	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}"
)

// fixture has the API, the cluster, the store and the clock of a controller. They outlive a process.
type fixture struct {
	testing.TB
	api     *fakeapi.API
	process *testkit.Process
	cluster *environmenttest.Cluster
	meta    *metadatafake.FakeMetadataClient
	kv      clientv3.KV
	clock   *testkit.Clock
	events  *testkit.EventLog
	stop    func()
	catalog *v1alpha1.AppCatalog
	// offered are the revisions of the catalog.
	offered offered
	beside
}

// offered are the kept revisions of a catalog.
type offered map[int64]map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord

// Offered returns a revision.
func (o offered) Offered(_ context.Context, _ types.UID, revision int64) (
	map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error,
) {
	return o[revision], nil
}

// Taken returns the revision, because a fixture has no rollbacks of the catalog.
func (o offered) Taken(_ context.Context, _ types.UID, revision int64) (int64, error) {
	return revision, nil
}

// newFixture returns a fixture with a catalog of production that offers web and worker, and the environment alice with its target.
func newFixture(t testing.TB, edit ...func(*v1alpha1.Environment)) *fixture {
	t.Helper()
	metaScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metaScheme); err != nil {
		t.Fatal(err)
	}
	s := &fixture{
		TB: t, cluster: environmenttest.NewCluster(t), meta: metadatafake.NewSimpleMetadataClient(metaScheme),
		clock: testkit.NewClock(t), stop: func() {}, events: &testkit.EventLog{}, catalog: environmenttest.Catalog(),
		offered: offered{}, beside: beside{ready: &ready{}, detector: &detector{}, rights: &environmenttest.Rights{}},
	}
	s.api = fakeapi.New(t, s.clock)
	s.process = s.api.Process
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return s.process.Write(write.Commit) })
	s.cluster.Answer(environmenttest.CountWrites(s.process))
	t.Cleanup(func() { s.stop() })
	s.addNamespace(environmenttest.Target)
	s.produce(configMap)
	s.offer(1, web, worker)
	e := environmenttest.Environment()
	for _, change := range edit {
		change(e)
	}
	s.addEnvironment(e)
	return s
}

// addNamespace creates a namespace.
func (s *fixture) addNamespace(name string) {
	s.Helper()
	s.cluster.Put(environmenttest.Object(s, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
	s.cluster.Put(environmenttest.Object(s, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: "+name+"}}"))
	err := s.meta.Tracker().Add(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name},
	})
	if err != nil {
		s.Fatal(err)
	}
}

// dropNamespace deletes a namespace and all objects in it.
func (s *fixture) dropNamespace(name string) {
	s.Helper()
	for _, object := range s.cluster.Names(name) {
		resource, object, _ := strings.Cut(object, "/")
		s.cluster.Drop(resource, name, object)
	}
	s.cluster.Drop("namespaces", "", name)
	if err := s.meta.Tracker().Delete(namespaces, "", name); err != nil {
		s.Fatal(err)
	}
}

// produce puts objects into production.
func (s *fixture) produce(texts ...string) {
	s.Helper()
	for _, text := range texts {
		s.cluster.Put(s.object(text))
	}
}

func (s *fixture) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := environmenttest.Object(s, text)
	o.SetNamespace(environmenttest.Production)
	return o
}

// offer has the catalog offer exactly these workloads, with a revision.
func (s *fixture) offer(revision int64, texts ...string) {
	s.Helper()
	status := &s.catalog.Status
	status.Revision, status.Workloads, status.LatestSync = revision, nil, fmt.Sprintf("shop-r%d", revision)
	status.History = append([]v1alpha1.CatalogRevision{{Revision: revision, Time: metav1.NewTime(noon), SyncStatus: status.LatestSync}},
		status.History...)
	s.offered[revision] = map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord{}
	for _, text := range texts {
		workload := environmenttest.Offer(s, s.catalog, s.object(text))
		s.offered[revision][v1alpha1.WorkloadReference{Kind: workload.Status.Kind, Name: workload.Status.Name}] = &workload.Status
		s.api.Put(workload)
	}
	s.api.Put(s.catalog)
}

// image returns a workload with another image.
func image(workload, image string) string { return strings.Replace(workload, ":1", ":"+image, 1) }

// start starts a process, which dies at its write last, or runs until stop.
func (s *fixture) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.process.Start(last, cancel)
	resourceTypes, err := watch.NewTypes(testkit.Discovery{}, s.meta, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	config := Config{Namespace: "slipstream-system", Runner: s.runner()}
	group := controller.NewGroup(s.controllerProcess(resourceTypes), s.api, testController{config, s.parts()})
	done := testkit.Run(ctx, s, group.Run, resourceTypes.Run)
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	return done
}

// testController is a Controller with the parts of a test.
type testController struct {
	config Config
	parts  parts
}

func (testController) Name() string { return controllerName }

func (c testController) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	environments, err := newEnvironments(c.config, shared, c.parts)
	if err != nil {
		return nil, err
	}
	return environments.run, nil
}

// controllerProcess returns the Process of the controller.
func (s *fixture) controllerProcess(resourceTypes *watch.Types) *controller.Process {
	return &controller.Process{
		Client: s.api.Client, Cluster: &watch.Clients{Metadata: s.meta}, Types: resourceTypes, Access: s.rights,
		Events: s.events, Store: s.store(), Clock: s.clock,
	}
}

// parts returns the parts of the test, except for the cluster that syncs write to.
func (s *fixture) parts() parts {
	return parts{
		remover:   s,
		readiness: func(func(types.NamespacedName)) (Readiness, error) { return s.ready, nil },
		detector: func(of following) Detector {
			s.detector.follow(of)
			return s.detector
		},
	}
}

func (s *fixture) store() *table.Store { return table.New(s.kv, "/test") }

func (s *fixture) runner() *syncer.Syncer {
	s.Helper()
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	client, mapper, kept := s.cluster.Client(), s.cluster.Mapper(), copies.New(s.store(), keptRevisions)
	return &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Client: client, Metadata: s.cluster.Metadata(), Mapper: mapper,
			Limiter: limiter, Concurrency: 4, Planner: environmenttest.Planner(), Copies: kept, Revisions: s.offered, Rights: s.rights,
			Clock: s.clock,
		},
		Applier: &apply.Applier{Client: client, Mapper: mapper, Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: 4},
		Copies:  kept, Records: s.api, Dependencies: s.api.Client.ConfigbutlerV1alpha1(), Index: index.New(),
	}
}

// eventually advances the clock until check returns no error.
func (s *fixture) eventually(what string, check func() error) {
	s.Helper()
	s.clock.Eventually(what, check)
}

// await waits until check returns no error, without advancing the clock.
func (s *fixture) await(what string, check func() error) {
	s.Helper()
	testkit.Eventually(s, what, check)
}

// pass advances the clock by seconds, so that everything due in them happens.
func (s *fixture) pass(seconds int) { s.clock.Advance(seconds, time.Second) }

// reaches waits until the environment alice satisfies a check.
func (s *fixture) reaches(what string, is func(*v1alpha1.Environment) bool) {
	s.Helper()
	s.eventually(what, func() error {
		if e := s.environment("alice"); !is(e) {
			return fmt.Errorf("%+v; records: %q", e.Status, s.recordLines())
		}
		return nil
	})
}

// applied waits until alice has a revision, and no sync is active or pending.
func (s *fixture) applied(revision int64) {
	s.Helper()
	s.reaches(fmt.Sprintf("revision %d", revision), func(e *v1alpha1.Environment) bool {
		return e.Status.AppliedRevision == revision && len(e.Status.ActiveSyncs) == 0 && len(e.Status.PendingRequests) == 0
	})
}

// images returns the images of the Deployments in the target, in the order of their names.
func (s *fixture) images() string {
	s.Helper()
	var out []string
	for _, name := range s.cluster.Names(environmenttest.Target) {
		resource, name, _ := strings.Cut(name, "/")
		if resource != "deployments" {
			continue
		}
		live := s.cluster.Live(resource, environmenttest.Target, name)
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		out = append(out, containers[0].(map[string]any)["image"].(string))
	}
	return strings.Join(out, " ")
}
