// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	noon        = testkit.Noon
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// fixture is the environment of a controller: the API, the source cluster, the store and the clock. They outlive a process.
type fixture struct {
	testing.TB
	api             *fakeapi.API
	source          *dynamicfake.FakeDynamicClient
	meta            *metadatafake.FakeMetadataClient
	kv              clientv3.KV
	clock           *testkit.Clock
	process         *testkit.Process
	resourceVersion int
	stop            func()
	authors         *fakeAuthors
	// facts are the facts of a real Joiner; nil: authors is used.
	facts  attribution.Facts
	events *testkit.EventLog
	// access checks the permissions of editors; nil: catalogs have no editors.
	access access.Reviewer
	// capacity is the capacity of the intake, 0 for the default.
	capacity int
	// history is that of a mirror in the same process, if mirrored is set.
	history  *history.History
	mirrored bool
}

// newFixture returns a fixture with a namespace production that has the Deployments api and worker.
func newFixture(t testing.TB, objects ...runtime.Object) *fixture {
	t.Helper()
	metaScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metaScheme); err != nil {
		t.Fatal(err)
	}
	s := &fixture{
		TB: t, source: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), clock: testkit.NewClock(t),
		meta: metadatafake.NewSimpleMetadataClient(metaScheme, namespace("production")),
		stop: func() {}, authors: &fakeAuthors{}, events: &testkit.EventLog{Describe: describe},
	}
	s.api = fakeapi.New(t, s.clock, objects...)
	s.process = s.api.Process
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if strings.HasPrefix(write.Key, "/test/"+revisions.TableName+"/") || write.Deletion {
			return s.process.Write(write.Commit)
		}
		return write.Commit()
	})
	s.put("api", "shop/api:1")
	s.put("worker", "shop/worker:1")
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a process, which crashes at its last write, or runs until stop.
func (s *fixture) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.process.Start(last, cancel)
	s.authors.submitted.Store(0)
	config := Config{AttributionMaxWait: 20 * time.Second, Namespace: "slipstream-system"}
	if s.mirrored {
		s.history = history.New(history.Config{
			Changes: s.store().Table("changes"), Rows: s.store().Table(history.TableName), Namespace: config.Namespace, Clock: s.clock,
		})
		config.History = s.history
	}
	config.Authors = s.authors
	if s.facts != nil {
		config.Facts, config.Authors = s.facts, nil
	}
	s.source.ClearActions()
	config.Capacity = s.capacity
	resourceTypes, err := watch.NewTypes(discovery(), s.meta, time.Hour)
	if err != nil {
		s.Fatal(err)
	}
	group := controller.NewGroup(&controller.Process{
		Client: s.api.Client, Cluster: &watch.Clients{Dynamic: s.source, Metadata: s.meta}, Types: resourceTypes, Access: s.access,
		Events: s.events, Store: s.store(), Clock: s.clock,
	}, s.api, &Controller{Config: config})
	done := testkit.Run(ctx, s, group.Run, resourceTypes.Run)
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	return done
}

func (s *fixture) store() *table.Store { return table.New(s.kv, "/test") }

// waitForWatches waits until the six types of workloads are watched.
func (s *fixture) waitForWatches() {
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
func (s *fixture) eventually(what string, check func() error) {
	s.Helper()
	s.clock.Eventually(what, check)
}

// waitForEvents waits for a number of submitted events since the start. The clock does not step meanwhile, so they are in one window.
func (s *fixture) waitForEvents(changes int64) {
	s.Helper()
	testkit.Eventually(s, "events are submitted", func() error {
		if got := s.authors.submitted.Load(); got < changes {
			return fmt.Errorf("%d events, want %d", got, changes)
		}
		return nil
	})
}

// stepWindow steps the clock until all pending work is done.
func (s *fixture) stepWindow() {
	s.Helper()
	s.step(90)
}

func (s *fixture) step(seconds int) { s.clock.Advance(seconds, time.Second) }

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
func (s *fixture) catalog(name string) *v1alpha1.AppCatalog {
	s.Helper()
	return fakeapi.Get[*v1alpha1.AppCatalog](s.api, "teams", name)
}

// edit changes the spec of a catalog.
func (s *fixture) edit(name, actor string, change func(*v1alpha1.AppCatalog)) {
	s.Helper()
	s.replace(name, func(catalog *v1alpha1.AppCatalog) {
		change(catalog)
		catalog.Generation++
		catalog.Status.PendingEdits = append(catalog.Status.PendingEdits,
			v1alpha1.CatalogEdit{Generation: catalog.Generation, Actor: actor, Time: metav1.NewTime(s.clock.Now())})
	})
}

// replace writes a catalog.
func (s *fixture) replace(name string, change func(*v1alpha1.AppCatalog)) {
	s.Helper()
	fakeapi.Change(s.api, "teams", name, change)
}

// waitForRevision waits until a catalog has a revision, and its spec has been processed.
func (s *fixture) waitForRevision(name string, revision int64) {
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
func (s *fixture) syncStatuses() []*v1alpha1.SyncStatus {
	s.Helper()
	records := fakeapi.List[*v1alpha1.SyncStatus](s.api, "teams")
	slices.SortFunc(records, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
			cmp.Compare(a.Status.Revision, b.Status.Revision), cmp.Compare(a.Name, b.Name))
	})
	return records
}

// recordLines returns the records, each as a line.
func (s *fixture) recordLines() []string {
	s.Helper()
	var lines []string
	for _, record := range s.syncStatuses() {
		lines = append(lines, recordLine(record))
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
func (s *fixture) expectRecords(want ...string) {
	s.Helper()
	if got := s.recordLines(); !slices.Equal(got, want) {
		s.Fatalf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// workloads returns the CatalogWorkloads.
func (s *fixture) workloads() []*v1alpha1.CatalogWorkload {
	s.Helper()
	return fakeapi.List[*v1alpha1.CatalogWorkload](s.api, "teams")
}

// images returns the images that a catalog offers, by workload.
func (s *fixture) images(catalog string) map[string]string {
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
