// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// requestTimeout bounds one request that is not a watch; it is the API server's own default.
const requestTimeout = time.Minute

// stream keeps one watch open with a client-go Reflector that stores no objects. The Reflector handles bookmarks, timeouts,
// retries and backoff. It lists before it watches: the stream lists one object, which checks that the type exists and can be
// read. The watch starts at the resourceVersion of that list.
type stream struct {
	// controller is the owner of the stream, for metrics.
	controller string
	watch      Watch
	reader     Reader
	handler    Handler
	received   metrics.CounterMetric

	mutex sync.Mutex
	// position is the resourceVersion up to which all events have been delivered, empty before the first start.
	position string
	// expired is set if the server cannot continue from position.
	expired bool
	// receivedAt is when the watch was opened or last received an event.
	receivedAt time.Time

	// stateMutex orders the calls of Handler.State, and prevents calls after the end.
	stateMutex sync.Mutex
	// reported is set once State has been called. failure is the argument of the last call.
	reported bool
	failure  error
	ended    bool
}

func newStream(controller string, watch Watch, reader Reader, handler Handler) *stream {
	return &stream{
		controller: controller, watch: watch, reader: reader, handler: handler,
		received: eventsReceived.WithLabelValues(controller), receivedAt: time.Now(),
	}
}

// run keeps the watch open until ctx ends. It returns after the last call of the handler.
func (s *stream) run(ctx context.Context) {
	defer s.end()
	running.add(s)
	defer running.remove(s)
	listWatch := withoutWatchList{&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.open}}
	// Pauses are between 0.5 and 30 seconds, jitter included.
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 20 * time.Second}
	cache.NewReflectorWithOptions(listWatch, &unstructured.Unstructured{}, s.store(ctx), cache.ReflectorOptions{
		Name: "source", TypeDescription: s.watch.String(), Backoff: backoff,
	}).RunWithContext(ctx)
}

// withoutWatchList prevents the Reflector from reading all objects as initial events of a watch.
type withoutWatchList struct {
	*cache.ListWatch
}

// IsWatchListSemanticsUnSupported is called by the Reflector.
func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// list is the Reflector's list. It returns no objects and the resourceVersion to watch from: the position where the last
// watch ended if the server can continue from there, the current resourceVersion otherwise.
func (s *stream) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	first, err := s.reader.list(bounded, s.watch, metav1.ListOptions{Limit: 1})
	if err != nil {
		s.failed(ctx, err)
		return nil, err
	}
	empty := &unstructured.UnstructuredList{}
	empty.SetResourceVersion(s.startFrom(first.GetResourceVersion()))
	return empty, nil
}

// startFrom returns the position, or the current resourceVersion if there is no position or it has expired. A position
// that is higher than the current resourceVersion has expired: the cluster's store was restored to an earlier state, and a
// watch from that position would miss the events up to it.
func (s *stream) startFrom(current string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// Versions that cannot be compared are those of servers with their own storage, which validate the position.
	if order, err := resourceversion.CompareResourceVersion(s.position, current); err == nil && order > 0 {
		s.expired = true
	}
	if s.position == "" || s.expired {
		return current
	}
	return s.position
}

// started records where the watch starts, and reports whether it continues where the last one ended.
func (s *stream) started(resourceVersion string) (resumed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	resumed = !s.expired && s.position != "" && s.position == resourceVersion
	s.position, s.expired = resourceVersion, false
	return resumed
}

func (s *stream) setPosition(resourceVersion string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.position = resourceVersion
}

func (s *stream) setExpired() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.expired = true
}

// open opens the watch and observes its events, because the Reflector does not report all errors that it handles.
func (s *stream) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	opened, err := s.reader.watch(ctx, s.watch, options)
	if err != nil {
		s.failed(ctx, err)
		return nil, err
	}
	s.report(nil)
	s.setReceived()
	return newMappedWatch(ctx, opened, func(event watch.Event) watch.Event {
		if event.Type == watch.Error {
			s.failed(ctx, apierrors.FromObject(event.Object))
			return event
		}
		s.setReceived()
		return event
	}), nil
}

// setReceived records that the watch was opened or has received an event.
func (s *stream) setReceived() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.receivedAt = time.Now()
}

func (s *stream) lastReceived() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.receivedAt
}

// failed records an error. An expired resourceVersion is not a failure: the stream immediately starts again, with Listed.
func (s *stream) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if isExpired(err) {
		s.setExpired()
		return
	}
	s.report(err)
}

// report calls Handler.State if the state differs from the last one in more than the message. nil is the state of an open watch.
func (s *stream) report(failure error) {
	s.stateMutex.Lock()
	defer s.stateMutex.Unlock()
	if s.ended || s.reported && sameState(s.failure, failure) {
		return
	}
	s.reported, s.failure = true, failure
	s.handler.State(s.watch, failure)
}

// state reports whether the watch is open or failing. It is neither before the first attempt has ended.
func (s *stream) state() (open, failing bool) {
	s.stateMutex.Lock()
	defer s.stateMutex.Unlock()
	return s.reported && s.failure == nil, s.reported && s.failure != nil
}

func sameState(a, b error) bool {
	return (a == nil) == (b == nil) && apierrors.ReasonForError(a) == apierrors.ReasonForError(b)
}

func (s *stream) end() {
	s.stateMutex.Lock()
	defer s.stateMutex.Unlock()
	s.ended = true
}

// store returns the store of the Reflector, which calls the handler. The Reflector passes no context to its store, so the
// handler receives the one of run.
func (s *stream) store(ctx context.Context) *forwarder {
	return &forwarder{
		started: func(resourceVersion string) {
			if !s.started(resourceVersion) {
				s.handler.Listed(ctx, s.watch, resourceVersion)
			}
		},
		changed: func(change Change) {
			if ctx.Err() != nil {
				return // The reflector forwards what it has received until it notices.
			}
			resourceVersion := change.Object.GetResourceVersion()
			s.received.Inc()
			s.handler.Changed(ctx, s.watch, change)
			s.setPosition(resourceVersion)
		},
		progressed: s.setPosition,
	}
}

// forwarder is a store for a Reflector. It stores nothing and calls its functions.
type forwarder struct {
	started    func(resourceVersion string)
	changed    func(Change)
	progressed func(resourceVersion string)
}

var (
	_ cache.ReflectorStore         = &forwarder{}
	_ cache.ReflectorBookmarkStore = &forwarder{}
)

// Add forwards an object that was created.
func (f *forwarder) Add(object any) error { return f.forward(Create, object) }

// Update forwards an object that has changed.
func (f *forwarder) Update(object any) error { return f.forward(Update, object) }

// Delete forwards an object that was deleted.
func (f *forwarder) Delete(object any) error { return f.forward(Delete, object) }

// Replace is called after every list and before the watch.
func (f *forwarder) Replace(_ []any, resourceVersion string) error {
	f.started(resourceVersion)
	return nil
}

// Bookmark is called for a resourceVersion without a change.
func (f *forwarder) Bookmark(resourceVersion string) error {
	f.progressed(resourceVersion)
	return nil
}

// Resync does nothing.
func (f *forwarder) Resync() error { return nil }

func (f *forwarder) forward(operation Operation, object any) error {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("forwarding a %s: unexpected %T", operation, object)
	}
	f.changed(Change{Operation: operation, Object: full})
	return nil
}
