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

// Watcher follows the workloads of all environments. It may be used concurrently.
type Watcher struct {
	types   []*watchedType
	changes *changes
	// needed is closed when an environment is asked for. A server without environments may be without the right to watch.
	needed chan struct{}

	mu sync.Mutex
	// known says that all workloads are known; asked are the environments that were asked for before.
	known bool
	asked sets.Set[types.NamespacedName]
}

// Config is what a Watcher needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Client lists and watches workloads in the whole cluster.
	Client dynamic.Interface
	// Changed hears of environments whose workloads have become ready, are not any more, have come or gone; at most once a second of
	// each. As soon as all are known, it hears once of all that have workloads, and of those that were asked for before. It must
	// return quickly.
	Changed func(environment types.NamespacedName)
	// Clock is for the time between; nil: the real one.
	Clock clock.Clock
}

// New returns a Watcher that knows nothing until Run, and until an environment is asked for.
func New(config Config) (*Watcher, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	w := &Watcher{
		changes: newChanges(config.Clock, config.Changed), needed: make(chan struct{}), asked: sets.New[types.NamespacedName](),
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

// Run follows workloads as soon as an environment is asked for, and tells of changes, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	select {
	case <-w.needed:
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
		checkers[i] = of.told.HasSyncedChecker()
	}
	if cache.WaitFor(ctx, "", checkers...) {
		w.learn()
		w.changes.tell(ctx)
	}
}

// learn has those hear that all is known who have asked too early.
func (w *Watcher) learn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = true
	for environment := range w.asked {
		w.changes.add(environment)
	}
	w.asked = nil
}

// knows says whether all is known; if not, an environment hears of it when it is.
func (w *Watcher) knows(e *v1alpha1.Environment) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.known {
		if w.asked.Len() == 0 {
			close(w.needed)
		}
		w.asked.Insert(types.NamespacedName{Namespace: e.Namespace, Name: e.Name})
	}
	return w.known
}

// Of counts the workloads in an environment that it has written, and says in a sentence each, in order, why those that are not ready
// are not. As long as not all are known, there is no count, and the sentences say what keeps them from being known.
func (w *Watcher) Of(e *v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string) {
	if !w.knows(e) {
		return nil, w.failures()
	}
	count := &v1alpha1.WorkloadsReady{}
	var troubles []string
	for _, of := range w.types {
		for _, workload := range of.writtenBy(e) {
			count.Total++
			if workload.trouble == "" {
				count.Ready++
				continue
			}
			troubles = append(troubles, workload.trouble)
		}
	}
	slices.Sort(troubles)
	return count, troubles
}

// failures are why there are types whose workloads are not known yet, if anything has gone wrong.
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

// watchedType is a type of workloads.
type watchedType struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	// told is that the Watcher hears of changes.
	told cache.ResourceEventHandlerRegistration

	mu sync.Mutex
	// err is why objects could not be listed or watched the last time.
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
	of.told, err = of.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.changed(nil, workloadOf(object)) },
		UpdateFunc: func(before, after any) { w.changed(workloadOf(before), workloadOf(after)) },
		DeleteFunc: func(object any) { w.changed(workloadOf(object), nil) },
	})
	return of, err
}

// changed leaves out what makes no difference to what is said of environments.
func (w *Watcher) changed(before, after *workload) {
	if before != nil && after != nil && before.writer == after.writer && before.trouble == after.trouble {
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
		return nil // There is such an index.
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

// failure says what keeps the objects from being known.
func (t *watchedType) failure() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("the server cannot list %s: %v", t.resource.GroupResource(), t.err)}
}
