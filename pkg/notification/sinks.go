// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// sinkWorkers and subjectWorkers are the numbers of sinks and of observed objects that are reconciled at the same time.
	sinkWorkers, subjectWorkers = 2, 4
	// statusInterval is the minimum time between two writes of a status.
	statusInterval = time.Second
)

// everything selects all objects.
var everything = labels.Everything()

// sinks sends the notifications of all sinks, for one term of leadership.
type sinks struct {
	config    Config
	shared    *controller.Shared
	informers externalversions.SharedInformerFactory
	rows      *table.Table
	events    *controllerevents.Announcer
	// queue has the sinks to reconcile, and subjects the objects to observe.
	queue    *controller.Queue[types.NamespacedName]
	subjects *controller.Queue[object]
	// changesNeeded wakes the collection of Changes when a sink needs them, or needs earlier ones.
	changesNeeded chan struct{}

	mu      sync.Mutex
	running map[types.NamespacedName]*sink
}

func newSinks(config Config, shared *controller.Shared) (*sinks, error) {
	s := &sinks{
		config: config, shared: shared, informers: shared.Informers, rows: shared.Store.Table(ledger.TableName),
		queue:         controller.NewQueue[types.NamespacedName](controllerName, shared.Clock),
		subjects:      controller.NewQueue[object](controllerName+"-subjects", shared.Clock),
		changesNeeded: make(chan struct{}, 1), running: map[types.NamespacedName]*sink{},
	}
	ignored := controllerevents.ReadyReasons{Ignore: []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonNotificationsSuspended}}
	s.events = controllerevents.New(shared.Events, ignored.Troubles)
	shared.Cleanup(s.queue.ShutDown)
	shared.Cleanup(s.subjects.ShutDown)
	return s, s.listen()
}

// listen adds the event handlers.
func (s *sinks) listen() error {
	api := s.informers.Configbutler().V1alpha1()
	_, err := api.NotificationSinks().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: s.enqueue, UpdateFunc: s.enqueueUpdate, DeleteFunc: func(deleted any) {
			s.enqueue(deleted)
			s.events.Forget(deleted)
		},
	})
	if err != nil {
		return fmt.Errorf("watch NotificationSinks: %w", err)
	}
	if err := syncpolicy.Follow(api.SyncPolicies(), s.policyChanged); err != nil {
		return err //nolint:wrapcheck // it says what it watches
	}
	return s.listenToSubjects()
}

// enqueue enqueues a sink that was created, updated or deleted.
func (s *sinks) enqueue(changed any) {
	if tombstone, ok := changed.(cache.DeletedFinalStateUnknown); ok {
		changed = tombstone.Obj
	}
	if sink, ok := changed.(*v1alpha1.NotificationSink); ok {
		s.queue.Add(types.NamespacedName{Namespace: sink.Namespace, Name: sink.Name})
	}
}

// enqueueUpdate enqueues an updated sink, unless only its status has changed: those updates are the controller's own.
func (s *sinks) enqueueUpdate(before, after any) {
	was, known := before.(*v1alpha1.NotificationSink)
	is, ok := after.(*v1alpha1.NotificationSink)
	if known && ok && was.UID == is.UID && was.Generation == is.Generation {
		return
	}
	s.enqueue(after)
}

// policyChanged has the sinks follow the SyncPolicy: it suspends sending, and the notifications of changes of catalogs, and says when reminders
// are due.
func (s *sinks) policyChanged() {
	for _, k := range s.current() {
		s.queue.Add(k.name)
		k.queue.signal()
	}
	s.enqueueSubjects(kindEnvironment, func(string) bool { return true })
}

// current returns the running sinks.
func (s *sinks) current() []*sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.running))
}

// policy returns the SyncPolicy.
func (s *sinks) policy() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(s.informers.Configbutler().V1alpha1().SyncPolicies().Lister())
}

// runUntil reconciles sinks and observes objects until ctx is done, and then stops all deliveries.
func (s *sinks) runUntil(ctx context.Context) error {
	if err := s.sweep(ctx); err != nil {
		return err
	}
	// All sinks are open before the first object is observed, so that each object is observed once for all of them.
	if err := s.openAll(ctx); err != nil {
		return err
	}
	var group wait.Group
	defer group.Wait()
	group.StartWithContext(ctx, func(ctx context.Context) { s.subjects.Run(ctx, subjectWorkers, s.observe) })
	group.StartWithContext(ctx, s.collectChanges)
	s.queue.Run(ctx, sinkWorkers, s.reconcile)
	for _, sink := range s.current() {
		sink.stop()
	}
	forgetGauges()
	return nil
}

// sweep deletes the ledgers of sinks that were deleted while no process led.
func (s *sinks) sweep(ctx context.Context) error {
	found, err := s.informers.Configbutler().V1alpha1().NotificationSinks().Lister().List(everything)
	if err != nil {
		return fmt.Errorf("read the NotificationSinks: %w", err)
	}
	exists := func(uid types.UID) bool {
		return slices.ContainsFunc(found, func(sink *v1alpha1.NotificationSink) bool { return sink.UID == uid })
	}
	return ledger.Sweep(ctx, s.rows, exists)
}

// openAll reconciles all sinks once.
func (s *sinks) openAll(ctx context.Context) error {
	found, err := s.informers.Configbutler().V1alpha1().NotificationSinks().Lister().List(everything)
	if err != nil {
		return fmt.Errorf("read the NotificationSinks: %w", err)
	}
	for _, object := range found {
		name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		if _, err := s.reconcile(ctx, name); err != nil {
			s.queue.Add(name)
		}
	}
	return nil
}
