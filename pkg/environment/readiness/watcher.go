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
}

// Config is what a Watcher needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Client lists and watches workloads in the whole cluster.
	Client dynamic.Interface
	// Changed hears of environments whose workloads have become ready, are not any more, have come or gone; at most once a second of
	// each, and of all once when the Watcher begins. It must return quickly.
	Changed func(environment types.NamespacedName)
	// Clock is for the time between; nil: the real one.
	Clock clock.Clock
}

// New returns a Watcher that knows nothing until Run.
func New(config Config) (*Watcher, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	w := &Watcher{changes: newChanges(config.Clock, config.Changed)}
	for _, resource := range v1alpha1.WorkloadResources() {
		watched, err := w.watch(config.Client, resource.WithVersion("v1"))
		if err != nil {
			return nil, fmt.Errorf("watch the %s of environments: %w", resource, err)
		}
		w.types = append(w.types, watched)
	}
	return w, nil
}

// Run follows workloads, and tells of changes, until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, of := range w.types {
		running.Go(func() { of.informer.RunWithContext(ctx) })
	}
	w.changes.tell(ctx)
}

// Of counts the workloads in an environment that it has written, and says in a sentence each, in order, why those that are not ready
// are not. As long as not all are known, there is no count, and the sentences say what keeps them from being known.
func (w *Watcher) Of(e *v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string) {
	if unknown, reasons := w.unknown(); unknown {
		return nil, reasons
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

// unknown says whether there are types whose workloads are not known yet, and why, if anything has gone wrong.
func (w *Watcher) unknown() (unknown bool, reasons []string) {
	for _, of := range w.types {
		if !of.informer.HasSynced() {
			unknown = true
			reasons = append(reasons, of.failure()...)
		}
	}
	slices.Sort(reasons)
	return unknown, reasons
}

// watchedType is a type of workloads.
type watchedType struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer

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
	_, err := of.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
