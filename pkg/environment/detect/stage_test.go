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
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/index"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/fake"
	versionedscheme "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/storage/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/workstore"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience is more than anything in these tests takes on a busy machine.
const patience = time.Minute

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

// stage is all around a detector: the API, the source cluster, the store and the clock. They outlive a process.
type stage struct {
	testing.TB
	api     *fake.Clientset
	source  *dynamicfake.FakeDynamicClient
	kv      clientv3.KV
	clock   *clocktesting.FakeClock
	life    *life
	authors *audit
	index   *index.Index
	stop    func()
	// capacity is that of the intake, 0 for its own.
	capacity int
	// detector is the one of the process that runs.
	detector *detect.Detector
	runner   detect.Runner

	// writing is held by who writes objects of ours, whose versions it counts.
	writing sync.Mutex
	version int
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{
		TB: t, api: fake.NewSimpleClientset(), source: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), index: index.New(),
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
	// last is the write that is not done any more, 0 when there is none.
	last int
	end  func()
}

// write counts a write, and fails from the last one on.
func (l *life) write() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.last > 0 && l.writes >= l.last {
		l.end()
		return errDead
	}
	return nil
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

func (kv mortalKV) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if err := kv.life.write(); err != nil {
		return nil, err
	}
	return kv.KV.Delete(ctx, key, options...)
}

// start begins the life of a process, which ends at its last write, or by stop.
func (s *stage) start(last int) (ended <-chan struct{}) {
	s.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(s, ktesting.NewConfig(ktesting.Verbosity(0)))))
	s.life.begin(last, cancel)
	s.source.ClearActions()
	s.index = index.New()
	detector := detect.New(s.config())
	s.detector = detector
	if err := detector.Rebuild(ctx); err != nil {
		s.Fatal(err)
	}
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

func (s *stage) config() detect.Config {
	return detect.Config{
		Slipstream: s.api.ConfigbutlerV1alpha1(), Source: s.source, Store: workstore.New(s.kv, test), Records: s, Index: s.index,
		Hasher: planner.Hasher, Runner: s.runner, Policy: policy, Clock: s.clock, Authors: s.authors,
		AttributionMaxWait: 20 * time.Second, Capacity: s.capacity,
	}
}

func policy() v1alpha1.SyncPolicySpec {
	defaults := &v1alpha1.SyncPolicy{}
	v1alpha1.SetObjectDefaults_SyncPolicy(defaults)
	return defaults.Spec
}

// restart has another process go on.
func (s *stage) restart() {
	s.Helper()
	s.stop()
	s.start(0)
}

// eventually lets time pass until check finds nothing wrong.
func (s *stage) eventually(what string, check func() error) {
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
func (s *stage) waits(what string, check func() error) {
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
func (s *stage) windowPasses() {
	s.Helper()
	for range 90 {
		s.clock.Step(time.Second)
		<-time.After(2 * time.Millisecond)
	}
}

// watching waits until there are so many watches.
func (s *stage) watching(want ...string) {
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
func (s *stage) store(object runtime.Object) error {
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
func (s *stage) Write(_ context.Context, record runtime.Object) error {
	if err := s.life.write(); err != nil {
		return err
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
func (s *stage) updateStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	if err := s.life.write(); err != nil {
		return true, nil, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	given := action.(clienttesting.UpdateAction).GetObject().(*v1alpha1.Environment)
	stored, err := s.api.Tracker().Get(environmentKind, given.Namespace, given.Name)
	if err != nil {
		return true, nil, err
	}
	next := stored.(*v1alpha1.Environment).DeepCopy()
	if given.ResourceVersion != next.ResourceVersion {
		return true, nil, apierrors.NewConflict(environmentKind.GroupResource(), given.Name, errors.New("it has been changed"))
	}
	next.Status = given.Status
	return true, next, s.store(next)
}

// syncStatuses are the records, the oldest first.
func (s *stage) syncStatuses() []v1alpha1.SyncStatus {
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
func (s *stage) told() []string {
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
func (s *stage) tells(want ...string) {
	s.Helper()
	s.eventually("records", func() error {
		if got := s.told(); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// stays expects the records to be these, also after a while.
func (s *stage) stays(want ...string) {
	s.Helper()
	s.tells(want...)
	s.windowPasses()
	if got := s.told(); !slices.Equal(got, want) {
		s.Fatalf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// environment returns one as it is now, nil if it is not there.
func (s *stage) environment(name string) *v1alpha1.Environment {
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
func (s *stage) change(name string, change func(*v1alpha1.Environment)) {
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
func (s *stage) move(name string, state v1alpha1.SyncState) {
	s.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	latest := s.environment(name).Status.LatestDependencySync
	object, err := s.api.Tracker().Get(syncStatusKind, environmenttest.Teams, latest)
	if err != nil {
		s.Fatal(err)
	}
	record := object.(*v1alpha1.SyncStatus).DeepCopy()
	record.Status.State = state
	if err := s.store(record); err != nil {
		s.Fatal(err)
	}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: environmenttest.Teams, Name: name}
}

// add has an environment that has nothing.
func (s *stage) add(name string) {
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

// dependencies are the records of what an environment has copies of.
func (s *stage) dependencies(name string) []v1alpha1.EnvironmentDependency {
	s.Helper()
	list, err := s.api.Tracker().List(dependencyKind, v1alpha1.SchemeGroupVersion.WithKind("EnvironmentDependency"), environmenttest.Teams)
	if err != nil {
		s.Fatal(err)
	}
	return slices.DeleteFunc(list.(*v1alpha1.EnvironmentDependencyList).Items, func(d v1alpha1.EnvironmentDependency) bool {
		return d.Status.Environment != name
	})
}

// ownedBy are the references of what goes when an environment does.
func ownedBy(environment *v1alpha1.Environment) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(environment, v1alpha1.SchemeGroupVersion.WithKind("Environment"))}
}

// dismiss does what the API does when somebody puts aside what an environment names.
func (s *stage) dismiss(name string) {
	s.Helper()
	s.move(name, v1alpha1.SyncStateDismissed)
	s.change(name, func(e *v1alpha1.Environment) { e.Status.LatestDependencySync = "" })
}
