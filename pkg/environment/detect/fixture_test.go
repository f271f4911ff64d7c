// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	versionedscheme "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience is more than anything in these tests takes on a busy machine.
const patience = 2 * time.Minute

var (
	noon             = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	environmentKind  = v1alpha1.SchemeGroupVersion.WithResource("environments")
	dependencyKind   = v1alpha1.SchemeGroupVersion.WithResource("environmentdependencies")
	syncStatusKind   = v1alpha1.SchemeGroupVersion.WithResource("syncstatuses")
	errDead          = errors.New("the process is dead")
	planner          = environmenttest.Planner()
	defaultAuthor    = "eve"
	production, test = environmenttest.Production, "/test"
)

// fixture is all around a detector: the API, the source cluster, the store and the clock. They outlive a process.
type fixture struct {
	testing.TB
	api     *fake.Clientset
	source  *dynamicfake.FakeDynamicClient
	types   clusterTypes
	kv      clientv3.KV
	clock   *clocktesting.FakeClock
	life    *life
	authors *audit
	index   *index.Index
	stop    func()
	// sources are the environments by their sources, and heard those that have heard of a change.
	sources map[string][]types.NamespacedName
	heard   hearing
	// capacity is that of the intake, 0 for its own.
	capacity int
	// detector is the one of the process that runs.
	detector *detect.Detector
	runner   detect.Runner
	// window is the batch window, 0 for its default.
	window atomic.Int64
	// before is called with what is about to be written; nil: nobody is.
	before func(record runtime.Object)

	// writing is held by who writes objects of ours, whose versions it counts.
	writing sync.Mutex
	version int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, api: fake.NewSimpleClientset(), source: newCluster(), index: index.New(),
		clock: clocktesting.NewFakeClock(noon), life: &life{}, authors: newAudit(), stop: func() {},
	}
	s.kv = mortalKV{bolttest.NewKV(t), s.life}
	s.api.PrependReactor("update", "environments", s.updateStatus)
	t.Cleanup(func() { s.stop() })
	return s
}

// life counts what a process writes, and can end it.
type life struct {
	mu     sync.Mutex
	writes int
	// last is the write at which the process dies, 0 when there is none. With answerLost, that write is done.
	last       int
	answerLost bool
	end        func()
}

// write does a write, as far as the process is alive.
func (l *life) write(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.last == 0 || l.writes < l.last {
		return do()
	}
	if l.end(); l.answerLost && l.writes == l.last {
		_ = do() // Nobody hears of it.
	}
	return errDead
}

func (l *life) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

func (l *life) begin(last int, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes, l.last, l.end = 0, last, end
}

// mortalKV counts the ends of batches, which are deletions.
type mortalKV struct {
	clientv3.KV
	life *life
}

func (kv mortalKV) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (out *clientv3.DeleteResponse, err error) {
	err = kv.life.write(func() error { out, err = kv.KV.Delete(ctx, key, options...); return err })
	return out, err
}

// start begins the life of a process, which ends at its last write, or by stop.
func (s *fixture) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.life.begin(last, cancel)
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
		Slipstream: s.api.ConfigbutlerV1alpha1(), Source: s.source, Mapper: &s.types, Store: table.New(s.kv, test), Records: s, Index: s.index,
		Hasher: planner.Hasher, Runner: s.runner, Policy: s.policy, Clock: s.clock, Authors: s.authors,
		AttributionMaxWait: 20 * time.Second, Capacity: s.capacity,
		Sources: func() map[string][]types.NamespacedName { return s.sources }, Changed: s.heard.add,
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

// restart has another process go on.
func (s *fixture) restart() {
	s.Helper()
	s.stop()
	s.start(0)
}

// eventually lets time pass until check finds nothing wrong.
func (s *fixture) eventually(what string, check func() error) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; {
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

// waits lets no time pass until check finds nothing wrong.
func (s *fixture) waits(what string, check func() error) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: %v", what, err)
		}
		<-time.After(time.Millisecond)
	}
}

// windowPasses lets so much time pass that nothing is on its way any more.
func (s *fixture) windowPasses() {
	s.Helper()
	for range 45 {
		s.clock.Step(2 * time.Second)
		<-time.After(2 * time.Millisecond)
	}
}

// rests lets so much time pass that all batches are done.
func (s *fixture) rests() {
	s.Helper()
	s.windowPasses()
	s.eventually("all batches are done", func() error {
		rows, err := s.kv.Get(context.Background(), test, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil && rows.Count > 0 {
			err = fmt.Errorf("%d rows are left", rows.Count)
		}
		return err
	})
}

// watching waits until there are so many watches.
func (s *fixture) watching(want ...string) {
	s.Helper()
	s.eventually("the sources are watched", func() error {
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
	})
}

// store writes an object of ours, whatever is there.
func (s *fixture) store(object runtime.Object) error {
	kinds, _, err := versionedscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return err
	}
	content, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.version++
	content.SetResourceVersion(strconv.Itoa(s.version))
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	err = s.api.Tracker().Add(object)
	if apierrors.IsAlreadyExists(err) {
		return s.api.Tracker().Update(resource, object, content.GetNamespace())
	}
	return err
}

// Write is how records are written: on the conditions that are in them.
func (s *fixture) Write(_ context.Context, record runtime.Object) error {
	return s.life.write(func() error { return s.write(record) })
}

func (s *fixture) write(record runtime.Object) error {
	if s.before != nil {
		s.before(record)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	record = record.DeepCopyObject()
	content, err := meta.Accessor(record)
	if err != nil {
		return err
	}
	kinds, _, err := versionedscheme.Scheme.ObjectKinds(record)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	stored, err := s.api.Tracker().Get(resource, content.GetNamespace(), content.GetName())
	switch {
	case apierrors.IsNotFound(err) && content.GetResourceVersion() != "":
		return apierrors.NewConflict(resource.GroupResource(), content.GetName(), errors.New("it is gone"))
	case apierrors.IsNotFound(err):
		return s.store(record)
	case err != nil:
		return err
	}
	before, err := meta.Accessor(stored)
	if err != nil {
		return err
	}
	if version := content.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return apierrors.NewConflict(resource.GroupResource(), content.GetName(), errors.New("it has been changed"))
	}
	return s.store(record)
}

// updateStatus does what the API does with a status: it refuses one of an earlier version.
func (s *fixture) updateStatus(action clienttesting.Action) (_ bool, next runtime.Object, err error) {
	given := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.Environment)
	err = s.life.write(func() error { next, err = s.writeStatus(given); return err })
	return true, next, err
}

func (s *fixture) writeStatus(given *v1alpha1.Environment) (runtime.Object, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.api.Tracker().Get(environmentKind, given.Namespace, given.Name)
	if err != nil {
		return nil, err
	}
	next := stored.(*v1alpha1.Environment).DeepCopy()
	if given.ResourceVersion != next.ResourceVersion {
		return nil, apierrors.NewConflict(environmentKind.GroupResource(), given.Name, errors.New("it has been changed"))
	}
	next.Status = given.Status
	return next, s.store(next)
}

// syncStatuses are the records, the oldest first.
func (s *fixture) syncStatuses() []v1alpha1.SyncStatus {
	s.Helper()
	list, err := s.api.Tracker().List(syncStatusKind, v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"), "")
	if err != nil {
		s.Fatal(err)
	}
	records := list.(*v1alpha1.SyncStatusList).Items
	slices.SortFunc(records, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.Spec.Subject.Name, b.Spec.Subject.Name), a.Status.DetectedAt.Compare(b.Status.DetectedAt.Time),
			cmp.Compare(a.Name, b.Name))
	})
	return records
}

// told are the records, each as a line. The one that its environment names has a star.
func (s *fixture) told() []string {
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

// tells waits until the records are these.
func (s *fixture) tells(want ...string) {
	s.Helper()
	s.eventually("records", func() error {
		if got := s.told(); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// stays expects the records to be these, also after a while.
func (s *fixture) stays(want ...string) {
	s.Helper()
	s.tells(want...)
	s.windowPasses()
	if got := s.told(); !slices.Equal(got, want) {
		s.Fatalf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// environment returns one as it is now, nil if it is not there.
func (s *fixture) environment(name string) *v1alpha1.Environment {
	s.Helper()
	object, err := s.api.Tracker().Get(environmentKind, environmenttest.Teams, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return object.(*v1alpha1.Environment).DeepCopy()
}

// change writes an environment as somebody else does.
func (s *fixture) change(name string, change func(*v1alpha1.Environment)) {
	s.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	environment := s.environment(name)
	change(environment)
	if err := s.store(environment); err != nil {
		s.Fatal(err)
	}
}

// move brings the record that an environment names to a state.
func (s *fixture) move(name string, state v1alpha1.SyncState) {
	s.Helper()
	if !s.moves(name, state, func(v1alpha1.SyncState) bool { return true }) {
		s.Fatalf("%s names no record", name)
	}
}

// moves brings the record that an environment names to a state, if there is one and its state is right for that.
func (s *fixture) moves(name string, state v1alpha1.SyncState, can func(from v1alpha1.SyncState) bool) bool {
	s.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	latest := s.environment(name).Status.LatestDependencySync
	if latest == "" {
		return false
	}
	object, err := s.api.Tracker().Get(syncStatusKind, environmenttest.Teams, latest)
	if err != nil {
		s.Fatal(err)
	}
	record := object.(*v1alpha1.SyncStatus).DeepCopy()
	if !can(record.Status.State) {
		return false
	}
	record.Status.State = state
	if err := s.store(record); err != nil {
		s.Fatal(err)
	}
	return true
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: environmenttest.Teams, Name: name}
}

// add has an environment that has nothing.
func (s *fixture) add(name string) {
	s.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	environment := environmenttest.Environment()
	environment.Name, environment.UID = name, types.UID("uid-of-"+name)
	environment.Spec.TargetNamespace = "shop-" + name
	environment.Status.AppliedRevision = 1
	if err := s.store(environment); err != nil {
		s.Fatal(err)
	}
}

// dependencies are the records of what an environment has copies of, or any.
func (s *fixture) dependencies(name string) []v1alpha1.EnvironmentDependency {
	s.Helper()
	list, err := s.api.Tracker().List(dependencyKind, v1alpha1.SchemeGroupVersion.WithKind("EnvironmentDependency"), environmenttest.Teams)
	if err != nil {
		s.Fatal(err)
	}
	return slices.DeleteFunc(list.(*v1alpha1.EnvironmentDependencyList).Items, func(d v1alpha1.EnvironmentDependency) bool {
		return name != "" && d.Status.Environment != name
	})
}

// ownedBy are the references of what goes when an environment does.
func ownedBy(environment *v1alpha1.Environment) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(environment, v1alpha1.SchemeGroupVersion.WithKind("Environment"))}
}

// dismiss does what the API does when somebody puts aside what an environment names.
func (s *fixture) dismiss(name string) {
	s.Helper()
	s.move(name, v1alpha1.SyncStateDismissed)
	s.change(name, func(e *v1alpha1.Environment) { e.Status.LatestDependencySync = "" })
}
