// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	planner          = environmenttest.Planner()
	defaultAuthor    = "eve"
	production, test = environmenttest.Production, "/test"
)

// fixture has the API, the source cluster, the store and the clock of a detector. They outlive a process.
type fixture struct {
	testing.TB
	api     *fakeapi.API
	source  *dynamicfake.FakeDynamicClient
	types   clusterTypes
	kv      clientv3.KV
	clock   *testkit.Clock
	process *testkit.Process
	authors *audit
	index   *index.Index
	stop    func()
	// sources are the environments by their sources, notified those that were notified of a change.
	sources  map[string][]types.NamespacedName
	notified notifications
	// capacity is the capacity of the intake, 0 for the default.
	capacity int
	// detector is the detector of the running process.
	detector *detect.Detector
	runner   detect.Runner
	// window is the batch window, 0 for its default.
	window atomic.Int64

	// version is the last resourceVersion of the source cluster.
	version atomic.Int64
	// mu protects the fields that a test changes while the detector runs.
	mu sync.Mutex
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, source: newCluster(), index: index.New(),
		clock: testkit.NewClock(t), authors: newAudit(), stop: func() {},
	}
	s.api = fakeapi.New(t, s.clock)
	s.process = s.api.Process
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if write.Deletion { // at the end of a batch
			return s.process.Write(write.Commit)
		}
		return write.Commit()
	})
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a process, which dies at its write last, or runs until stop.
func (s *fixture) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.process.Start(last, cancel)
	s.source.ClearActions()
	s.index = index.New()
	s.index.Rebuild(s.dependencies(""), s.index.Revision())
	detector := detect.New(s.config())
	s.detector = detector
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := detector.Run(ctx); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	return done
}

func (s *fixture) config() detect.Config {
	return detect.Config{
		Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Source: s.source,
		Mapper: &s.types, Store: table.New(s.kv, test), Records: s.api, Index: s.index,
		Hasher: planner.Hasher, Runner: s.runner, Policy: s.policy, Clock: s.clock, Authors: s.authors,
		AttributionMaxWait: 20 * time.Second, Capacity: s.capacity,
		Sources: func() map[string][]types.NamespacedName { return s.sources }, Changed: s.notified.add,
	}
}

func (s *fixture) policy() v1alpha1.SyncPolicySpec {
	defaults := &v1alpha1.SyncPolicy{}
	v1alpha1.SetObjectDefaults_SyncPolicy(defaults)
	if window := s.window.Load(); window > 0 {
		defaults.Spec.BatchWindow.Duration = time.Duration(window)
	}
	return defaults.Spec
}

// restart starts another process in place of this one.
func (s *fixture) restart() {
	s.Helper()
	s.stop()
	s.start(0)
}

// eventually advances the clock until check returns no error.
func (s *fixture) eventually(what string, check func() error) {
	s.Helper()
	s.clock.Eventually(what, check)
}

// waits waits until check returns no error, without advancing the clock.
func (s *fixture) waits(what string, check func() error) {
	s.Helper()
	testkit.Eventually(s, what, check)
}

// windowPasses advances the clock by more than a window.
func (s *fixture) windowPasses() { s.clock.Advance(45, 2*time.Second) }

// rests advances the clock until all batches are done.
func (s *fixture) rests() {
	s.Helper()
	s.windowPasses()
	s.eventually("all batches are done", func() error {
		if rows := s.rows(); rows > 0 {
			return fmt.Errorf("%d rows are left", rows)
		}
		return nil
	})
}

// rows returns the number of rows of all batches.
func (s *fixture) rows() int64 {
	s.Helper()
	rows, err := s.kv.Get(context.Background(), test, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		s.Fatal(err)
	}
	return rows.Count
}

// watching waits until exactly these types are watched.
func (s *fixture) watching(want ...string) {
	s.Helper()
	s.eventually("the sources are watched", s.watchedTypes(want...))
}

// watchedTypes returns a check that exactly these types are watched.
func (s *fixture) watchedTypes(want ...string) func() error {
	return func() error {
		var got []string
		for _, action := range s.source.Actions() {
			if action.GetVerb() == "watch" {
				got = append(got, action.GetNamespace()+"/"+action.GetResource().Resource)
			}
		}
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), want) {
			return fmt.Errorf("watches: %q, want %q", got, want)
		}
		return nil
	}
}

// syncStatuses returns the records, ordered by environment and age.
func (s *fixture) syncStatuses() []*v1alpha1.SyncStatus {
	s.Helper()
	records := fakeapi.List[*v1alpha1.SyncStatus](s.api, "")
	slices.SortFunc(records, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Spec.Subject.Name, b.Spec.Subject.Name), a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return records
}

// recordLines returns the records, each as a line. The one in the status of its environment has a star.
func (s *fixture) recordLines() []string {
	s.Helper()
	var lines []string
	for _, record := range s.syncStatuses() {
		words := []string{record.Spec.Subject.Name, string(record.Status.State)}
		if e := s.environment(record.Spec.Subject.Name); e != nil && e.Status.LatestDependencySync == record.Name {
			words[1] += "*"
		}
		for _, change := range record.Status.ResourceSummaries {
			words = append(words, string(change.ChangeType), change.Type, change.Name)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// expectRecords waits until the records are these.
func (s *fixture) expectRecords(want ...string) {
	s.Helper()
	s.eventually("records", func() error {
		if got := s.recordLines(); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// stays expects the records to be these and to stay so.
func (s *fixture) stays(want ...string) {
	s.Helper()
	s.expectRecords(want...)
	s.windowPasses()
	if got := s.recordLines(); !slices.Equal(got, want) {
		s.Fatalf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// environment returns the environment with a name, nil if it does not exist.
func (s *fixture) environment(name string) *v1alpha1.Environment {
	s.Helper()
	return fakeapi.Get[*v1alpha1.Environment](s.api, environmenttest.Teams, name)
}

// change changes an environment, as another client does.
func (s *fixture) change(name string, change func(*v1alpha1.Environment)) {
	s.Helper()
	fakeapi.Change(s.api, environmenttest.Teams, name, change)
}

// move sets the state of the record in the status of an environment.
func (s *fixture) move(name string, state v1alpha1.SyncState) {
	s.Helper()
	if !s.moves(name, state, func(v1alpha1.SyncState) bool { return true }) {
		s.Fatalf("status of %s names no record", name)
	}
}

// moves sets the state of the record in the status of an environment, if it has one in a suitable state.
func (s *fixture) moves(name string, state v1alpha1.SyncState, can func(from v1alpha1.SyncState) bool) (moved bool) {
	s.Helper()
	latest := s.environment(name).Status.LatestDependencySync
	if latest == "" {
		return false
	}
	fakeapi.Change(s.api, environmenttest.Teams, latest, func(record *v1alpha1.SyncStatus) {
		if moved = can(record.Status.State); moved {
			record.Status.State = state
		}
	})
	return moved
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: environmenttest.Teams, Name: name}
}

// add creates an environment without copies.
func (s *fixture) add(name string) {
	s.Helper()
	environment := environmenttest.Environment()
	environment.Name, environment.UID = name, types.UID("uid-of-"+name)
	environment.Spec.TargetNamespace = "shop-" + name
	environment.Status.AppliedRevision = 1
	s.api.Put(environment)
}

// dependencies returns the EnvironmentDependencies of an environment; those of all environments if the name is empty.
func (s *fixture) dependencies(name string) (dependencies []v1alpha1.EnvironmentDependency) {
	s.Helper()
	for _, dependency := range fakeapi.List[*v1alpha1.EnvironmentDependency](s.api, environmenttest.Teams) {
		if name == "" || dependency.Status.Environment == name {
			dependencies = append(dependencies, *dependency)
		}
	}
	return dependencies
}

// ownedBy returns the owner references of objects that are deleted with an environment.
func ownedBy(environment *v1alpha1.Environment) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(environment, v1alpha1.SchemeGroupVersion.WithKind("Environment"))}
}

// dismiss dismisses the record in the status of an environment, as the API does.
func (s *fixture) dismiss(name string) {
	s.Helper()
	s.move(name, v1alpha1.SyncStateDismissed)
	s.change(name, func(e *v1alpha1.Environment) { e.Status.LatestDependencySync = "" })
}
