// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Watcher watches the workloads of all environments. It is safe for concurrent use.
type Watcher struct {
	types   []*watchedType
	changes *changes
	// started is closed at the first call of Of. A server without environments may lack the permission to watch.
	started chan struct{}

	mu sync.Mutex
	// synced is true if all workloads are known. waiting holds the environments that called Of before.
	synced  bool
	waiting sets.Set[types.NamespacedName]
}

// Config configures a Watcher. All fields are required unless their comment says otherwise.
type Config struct {
	// Client lists and watches workloads in the whole cluster.
	Client dynamic.Interface
	// Changed is called with environments whose workloads become ready or not ready, or are created or deleted, at most
	// once a second for each. When the caches have synced, it is called for all environments with workloads and for those
	// that called Of before. It must return quickly.
	Changed func(environment types.NamespacedName)
	// Clock is used to batch changes. The default is the real clock.
	Clock clock.Clock
}

// New returns a Watcher. It watches nothing before Run, and before the first call of Of.
func New(config Config) (*Watcher, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	w := &Watcher{
		changes: newChanges(config.Clock, config.Changed), started: make(chan struct{}), waiting: sets.New[types.NamespacedName](),
	}
	for _, resource := range v1alpha1.WorkloadResources() {
		watched, err := w.watch(config.Client, resource.WithVersion("v1"))
		if err != nil {
			return nil, fmt.Errorf("watch the %s of environments: %w", resource, err)
		}
		w.types = append(w.types, watched)
	}
	return w, nil
}

// Run watches workloads until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	select {
	case <-w.started:
	case <-ctx.Done():
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, of := range w.types {
		running.Go(func() { of.informer.RunWithContext(ctx) })
	}
	checkers := make([]cache.DoneChecker, len(w.types))
	for i, of := range w.types {
		checkers[i] = of.registration.HasSyncedChecker()
	}
	if cache.WaitFor(ctx, "", checkers...) {
		w.markSynced()
		w.changes.run(ctx)
	}
}

// markSynced notifies the environments that called Of before the caches had synced.
func (w *Watcher) markSynced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = true
	for environment := range w.waiting {
		w.changes.add(environment)
	}
	w.waiting = nil
}

// isSynced reports whether all workloads are known. If not, the environment is notified when they are.
func (w *Watcher) isSynced(e *v1alpha1.Environment) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.synced {
		if w.waiting.Len() == 0 {
			close(w.started)
		}
		w.waiting.Insert(types.NamespacedName{Namespace: e.Namespace, Name: e.Name})
	}
	return w.synced
}

// Of counts the workloads that an environment has written, and returns the sorted reasons of those that are not ready.
// Until the caches have synced, the count is nil and the reasons are errors of listing.
func (w *Watcher) Of(e *v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string) {
	if !w.isSynced(e) {
		return nil, w.failures()
	}
	count := &v1alpha1.WorkloadsReady{}
	var troubles []string
	for _, of := range w.types {
		for _, workload := range of.writtenBy(e) {
			count.Total++
			if workload.reason == "" {
				count.Ready++
				continue
			}
			troubles = append(troubles, workload.reason)
		}
	}
	slices.Sort(troubles)
	return count, troubles
}

// failures returns the errors of types that are not synced yet.
func (w *Watcher) failures() []string {
	var reasons []string
	for _, of := range w.types {
		if !of.informer.HasSynced() {
			reasons = append(reasons, of.failure()...)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// watchedType is the informer of a workload type.
type watchedType struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	// registration tracks whether the handler has received the initial list.
	registration cache.ResourceEventHandlerRegistration

	mu sync.Mutex
	// err is the last error of list or watch.
	err error
}

func (w *Watcher) watch(client dynamic.Interface, resource schema.GroupVersionResource) (*watchedType, error) {
	of := &watchedType{resource: resource}
	ours := func(options *metav1.ListOptions) { options.LabelSelector = v1alpha1.LabelEnvironmentUID }
	of.informer = dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0, indexers(), ours).Informer()
	if err := of.informer.SetTransform(trim); err != nil {
		return nil, err
	}
	if err := of.informer.SetWatchErrorHandlerWithContext(of.failed); err != nil {
		return nil, err
	}
	var err error
	of.registration, err = of.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.enqueue(nil, workloadOf(object)) },
		UpdateFunc: func(before, after any) { w.enqueue(workloadOf(before), workloadOf(after)) },
		DeleteFunc: func(object any) { w.enqueue(workloadOf(object), nil) },
	})
	return of, err
}

// enqueue skips updates that do not change the reason.
func (w *Watcher) enqueue(before, after *workload) {
	if before != nil && after != nil && before.writer == after.writer && before.reason == after.reason {
		return
	}
	for _, of := range []*workload{before, after} {
		if of.isWritten() {
			w.changes.add(of.writer.NamespacedName)
		}
	}
}

func (t *watchedType) writtenBy(e *v1alpha1.Environment) []*workload {
	found, err := t.informer.GetIndexer().ByIndex(byWriter, string(e.UID))
	if err != nil {
		return nil // The index exists.
	}
	var workloads []*workload
	for _, object := range found {
		of := workloadOf(object)
		if of.namespace == e.Spec.TargetNamespace && of.writer.Name == e.Name && of.writer.Namespace == e.Namespace {
			workloads = append(workloads, of)
		}
	}
	return workloads
}

func (t *watchedType) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	t.mu.Lock()
	t.err = err
	t.mu.Unlock()
	cache.DefaultWatchErrorHandler(ctx, reflector, err)
}

// failure describes the last error.
func (t *watchedType) failure() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("the server cannot list %s: %v", t.resource.GroupResource(), t.err)}
}
