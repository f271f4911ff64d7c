// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// timeout is longer than any step of these tests takes on a busy machine.
const timeout = 2 * time.Minute

var (
	noon        = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	catalogKind = v1alpha1.SchemeGroupVersion.WithResource("appcatalogs")
)

// stage is the environment of a controller: the API, the source cluster, the store and the clock. They outlive a process.
type stage struct {
	testing.TB
	api             *fake.Clientset
	source          *dynamicfake.FakeDynamicClient
	meta            *metadatafake.FakeMetadataClient
	kv              clientv3.KV
	clock           *clocktesting.FakeClock
	process         *process
	resourceVersion int
	stop            func()
	authors         *fakeAuthors
	// facts are the facts of a real Joiner; nil: authors is used.
	facts  attribution.Facts
	events *eventLog
	// access checks the permissions of editors; nil: catalogs have no editors.
	access access.Reviewer
	// capacity is the capacity of the intake, 0 for the default.
	capacity int
	// commitIndex is the commit index of a mirror in the same process, if mirrored is set.
	commitIndex *commitindex.Index
	mirrored    bool
	// writing serializes writes of catalogs.
	writing sync.Mutex
}

// newStage returns a stage with a namespace production that has the Deployments api and worker.
func newStage(t testing.TB, objects ...runtime.Object) *stage {
	t.Helper()
	metaScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metaScheme); err != nil {
		t.Fatal(err)
	}
	s := &stage{
		TB: t, api: newAPI(objects...), source: dynamicfake.NewSimpleDynamicClient(scheme.Scheme),
		meta:  metadatafake.NewSimpleMetadataClient(metaScheme, namespace("production")),
		clock: clocktesting.NewFakeClock(noon), process: &process{}, stop: func() {}, authors: &fakeAuthors{}, events: &eventLog{},
	}
	s.kv = crashingKV{bolttest.NewKV(t), s.process}
	s.api.PrependReactor("update", "appcatalogs", s.updateStatus)
	s.api.PrependReactor("*", "*", s.process.react)
	s.put("api", "shop/api:1")
	s.put("worker", "shop/worker:1")
	t.Cleanup(func() { s.stop() })
	return s
}

// newAPI returns a client of a fake API with objects. NewClientset cannot be used: its schemas lack the fields of raw manifests.
func newAPI(objects ...runtime.Object) *fake.Clientset {
	return fake.NewSimpleClientset(objects...)
}

// process counts the writes of a process, and can crash it.
type process struct {
	mu     sync.Mutex
	writes int
	// last is the first write that fails, 0 if none does.
	last  int
	crash func()
}

var errCrashed = errors.New("the process has crashed")

// write counts a write. It fails for the last one and later ones.
func (l *process) write() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.last > 0 && l.writes >= l.last {
		l.crash()
		return errCrashed
	}
	return nil
}

func (l *process) begin(last int, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes, l.last, l.crash = 0, last, end
}

// crashingKV counts the deletions of batches and the writes of revisions.
type crashingKV struct {
	clientv3.KV
	process *process
}

func (kv crashingKV) Txn(ctx context.Context) clientv3.Txn {
	return crashingTxn{kv.KV.Txn(ctx), kv.process}
}

type crashingTxn struct {
	clientv3.Txn
	process *process
}

func (txn crashingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	if !strings.HasPrefix(string(ops[0].KeyBytes()), "/test/"+revisions.TableName+"/") {
		return txn.Txn.Then(ops...)
	}
	return crashingTxn{txn.Txn.Then(ops...), txn.process}
}

func (txn crashingTxn) Commit() (*clientv3.TxnResponse, error) {
	if err := txn.process.write(); err != nil {
		return nil, err
	}
	return txn.Txn.Commit()
}

func (kv crashingKV) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if err := kv.process.write(); err != nil {
		return nil, err
	}
	return kv.KV.Delete(ctx, key, options...)
}

// react counts the writes of the controller's client.
func (l *process) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if verb := action.GetVerb(); verb == "update" || verb == "delete" {
		if err := l.write(); err != nil {
			return true, nil, err
		}
	}
	return false, nil, nil
}

// start starts a process, which crashes at its last write, or runs until stop.
func (s *stage) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.process.begin(last, cancel)
	s.authors.submitted.Store(0)
	config := Config{AttributionMaxWait: 20 * time.Second, Namespace: "slipstream-system"}
	if s.mirrored {
		s.commitIndex = commitindex.New(s.store().Table(commitindex.TableName), s.clock, 0)
		config.CommitIndex = s.commitIndex
	}
	config.Authors = s.authors
	if s.facts != nil {
		config.Facts, config.Authors = s.facts, nil
	}
	s.source.ClearActions()
	config.Capacity = s.capacity
	resourceTypes, err := watch.NewTypes(served{}, s.meta, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	group := controller.NewGroup(&controller.Process{
		Client: s.api, Cluster: &watch.Clients{Dynamic: s.source, Metadata: s.meta}, Types: resourceTypes, Access: s.access,
		Events: s.events, Store: s.store(), Clock: s.clock,
	}, &records{s}, &Controller{Config: config})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var running wait.Group
		defer running.Wait()
		running.StartWithContext(ctx, resourceTypes.Run)
		if err := group.Run(ctx); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	return done
}

func (s *stage) store() *table.Store { return table.New(s.kv, "/test") }

// waitForWatches waits until the six types of workloads are watched.
func (s *stage) waitForWatches() {
	s.Helper()
	s.eventually("the source is watched", func() error {
		n := 0
		for _, action := range s.source.Actions() {
			if action.GetVerb() == "watch" {
				n++
			}
		}
		if n < 6 {
			return fmt.Errorf("%d watches", n)
		}
		return nil
	})
}

// eventually steps the clock until check returns no error.
func (s *stage) eventually(what string, check func() error) {
	s.Helper()
	for deadline := time.Now().Add(timeout); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: %v", what, err)
		}
		s.clock.Step(time.Second)
		<-time.After(2 * time.Millisecond)
	}
}

// waitForEvents waits for a number of submitted events since the start. The clock does not step meanwhile, so they are in one window.
func (s *stage) waitForEvents(changes int64) {
	s.Helper()
	for deadline := time.Now().Add(timeout); s.authors.submitted.Load() < changes; {
		if time.Now().After(deadline) {
			s.Fatalf("%d events were submitted, want %d", s.authors.submitted.Load(), changes)
		}
		<-time.After(time.Millisecond)
	}
}

// stepWindow steps the clock until all pending work is done.
func (s *stage) stepWindow() {
	s.Helper()
	s.step(90)
}

func (s *stage) step(seconds int) {
	s.Helper()
	for range seconds {
		s.clock.Step(time.Second)
		<-time.After(2 * time.Millisecond)
	}
}

// appCatalog returns a catalog with Deployments of production that eve has just created.
func appCatalog(name string, workloads ...string) *v1alpha1.AppCatalog {
	catalog := &v1alpha1.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       v1alpha1.AppCatalogSpec{SourceNamespace: "production"},
	}
	for _, workload := range workloads {
		catalog.Spec.Workloads = append(catalog.Spec.Workloads, reference{Kind: v1alpha1.WorkloadDeployment, Name: workload})
	}
	v1alpha1.SetObjectDefaults_AppCatalog(catalog)
	catalog.Status.PendingEdits = []v1alpha1.CatalogEdit{{Generation: 1, Actor: "eve", Time: metav1.NewTime(noon)}}
	return catalog
}

// catalog returns the current state of a catalog.
func (s *stage) catalog(name string) *v1alpha1.AppCatalog {
	s.Helper()
	object, err := s.api.Tracker().Get(catalogKind, "teams", name)
	if err != nil {
		s.Fatal(err)
	}
	return object.(*v1alpha1.AppCatalog)
}

// edit changes the spec of a catalog.
func (s *stage) edit(name, actor string, change func(*v1alpha1.AppCatalog)) {
	s.Helper()
	s.replace(name, func(catalog *v1alpha1.AppCatalog) {
		change(catalog)
		catalog.Generation++
		catalog.Status.PendingEdits = append(catalog.Status.PendingEdits,
			v1alpha1.CatalogEdit{Generation: catalog.Generation, Actor: actor, Time: metav1.NewTime(s.clock.Now())})
	})
}

// replace writes a catalog.
func (s *stage) replace(name string, change func(*v1alpha1.AppCatalog)) {
	s.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	catalog := s.catalog(name).DeepCopy()
	change(catalog)
	catalog.ResourceVersion += "+"
	if err := s.api.Tracker().Update(catalogKind, catalog, "teams"); err != nil {
		s.Fatal(err)
	}
}

// updateStatus updates a status like the API: it returns a Conflict for an earlier resourceVersion.
func (s *stage) updateStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	given := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.AppCatalog)
	stored, err := s.api.Tracker().Get(catalogKind, given.Namespace, given.Name)
	if err != nil {
		return true, nil, err
	}
	next := stored.(*v1alpha1.AppCatalog).DeepCopy()
	if given.ResourceVersion != next.ResourceVersion {
		return true, nil, apierrors.NewConflict(catalogKind.GroupResource(), given.Name, errors.New("it has been changed"))
	}
	next.Status = given.Status
	next.ResourceVersion += "+"
	return true, next, s.api.Tracker().Update(catalogKind, next, given.Namespace)
}

// waitForRevision waits until a catalog has a revision, and its spec has been processed.
func (s *stage) waitForRevision(name string, revision int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("revision %d of %s", revision, name), func() error {
		catalog := s.catalog(name)
		if catalog.Status.Revision != revision || specChanged(catalog) {
			return fmt.Errorf("%+v", catalog.Status)
		}
		return nil
	})
}

// syncStatuses returns the records, oldest first.
func (s *stage) syncStatuses() []v1alpha1.SyncStatus {
	s.Helper()
	list, err := s.api.Tracker().List(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"),
		v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"), "teams")
	if err != nil {
		s.Fatal(err)
	}
	records := list.(*v1alpha1.SyncStatusList).Items
	slices.SortFunc(records, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
			cmp.Compare(a.Status.Revision, b.Status.Revision), cmp.Compare(a.Name, b.Name))
	})
	return records
}

// recordLines returns the records, each as a line.
func (s *stage) recordLines() []string {
	s.Helper()
	var lines []string
	for _, record := range s.syncStatuses() {
		lines = append(lines, recordLine(&record))
	}
	return lines
}

func recordLine(record *v1alpha1.SyncStatus) string {
	status := &record.Status
	words := []string{record.Spec.Subject.Name, fmt.Sprint(status.Revision), string(status.State)}
	if status.Preview {
		words = append(words, "preview")
	}
	if status.Actor != "" {
		words = append(words, "by "+status.Actor)
	}
	for _, change := range status.ResourceSummaries {
		words = append(words, string(change.ChangeType)+" "+change.Name)
	}
	return strings.Join(append(words, fmt.Sprintf("(%d)", status.WorkloadCount)), " ")
}

// expectRecords checks the SyncStatuses.
func (s *stage) expectRecords(want ...string) {
	s.Helper()
	if got := s.recordLines(); !slices.Equal(got, want) {
		s.Fatalf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// workloads returns the CatalogWorkloads.
func (s *stage) workloads() []v1alpha1.CatalogWorkload {
	s.Helper()
	list, err := s.api.Tracker().List(v1alpha1.SchemeGroupVersion.WithResource("catalogworkloads"),
		v1alpha1.SchemeGroupVersion.WithKind("CatalogWorkload"), "teams")
	if err != nil {
		s.Fatal(err)
	}
	return list.(*v1alpha1.CatalogWorkloadList).Items
}

// images returns the images that a catalog offers, by workload.
func (s *stage) images(catalog string) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, record := range s.workloads() {
		offered := record.Status.Rendered
		if offered == nil {
			offered = record.Status.Manifest
		}
		if offered == nil || record.Labels[v1alpha1.LabelCatalog] != catalog {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(offered.Raw); err != nil {
			s.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		out[record.Status.Name] = containers[0].(map[string]any)["image"].(string)
	}
	return out
}
