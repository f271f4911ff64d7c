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

// stream keeps one watch open with a client-go Reflector that holds no objects. The Reflector brings the care for
// bookmarks, timeouts, retries and backoff. It wants to list before it watches: here that is a list of one object,
// which proves that the type is there and may be read, and whose resourceVersion is a safe start for the watch.
type stream struct {
	// controller is whose stream it is, for the metrics.
	controller string
	watch      Watch
	reader     Reader
	handler    Handler
	received   metrics.CounterMetric

	mutex sync.Mutex
	// position is up to where everything has been delivered; empty before the first start.
	position string
	// expired says that the server cannot go on from position.
	expired bool
	// heard is when the watch last brought anything, or was opened.
	heard time.Time

	// stateMutex keeps the calls of Handler.State in order, and from coming after the end.
	stateMutex sync.Mutex
	// reported says that State has been called, failure with what.
	reported bool
	failure  error
	ended    bool
}

func newStream(controller string, watch Watch, reader Reader, handler Handler) *stream {
	return &stream{
		controller: controller, watch: watch, reader: reader, handler: handler,
		received: eventsReceived.WithLabelValues(controller), heard: time.Now(),
	}
}

// run returns when ctx ends, after the last call of the handler.
func (s *stream) run(ctx context.Context) {
	defer s.end()
	running.add(s)
	defer running.remove(s)
	listWatch := headOnly{&cache.ListWatch{ListWithContextFunc: s.head, WatchFuncWithContext: s.open}}
	// With the jitter that comes on top, pauses are between 0.5 and 30 seconds.
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 20 * time.Second}
	cache.NewReflectorWithOptions(listWatch, &unstructured.Unstructured{}, s.store(ctx), cache.ReflectorOptions{
		Name: "source", TypeDescription: s.watch.String(), Backoff: backoff,
	}).RunWithContext(ctx)
}

// headOnly keeps the Reflector from streaming all objects as a watch's initial events.
type headOnly struct {
	*cache.ListWatch
}

// IsWatchListSemanticsUnSupported is the name under which the Reflector asks.
func (headOnly) IsWatchListSemanticsUnSupported() bool { return true }

// head answers the Reflector's list with no objects and the resourceVersion to watch from: the position where the last
// watch ended, if the server can go on from there, and otherwise the present one.
func (s *stream) head(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := s.reader.list(bounded, s.watch, metav1.ListOptions{Limit: 1})
	if err != nil {
		s.failed(ctx, err)
		return nil, err
	}
	head := &unstructured.UnstructuredList{}
	head.SetResourceVersion(s.startFrom(list.GetResourceVersion()))
	return head, nil
}

// startFrom chooses the position over the present resourceVersion, unless the position is ahead of it: then the
// cluster's store has been put back to an earlier state, and a watch from there would wait for what has long happened.
func (s *stream) startFrom(present string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// Versions that cannot be compared come from servers with a storage of their own, which judge the position.
	if order, err := resourceversion.CompareResourceVersion(s.position, present); err == nil && order > 0 {
		s.expired = true
	}
	if s.position == "" || s.expired {
		return present
	}
	return s.position
}

// started takes note of where the watch starts, and says whether it goes on from where the last one ended.
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

// open opens a watch whose errors the stream sees: the Reflector handles them, but keeps some to itself.
func (s *stream) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	opened, err := s.reader.watch(ctx, s.watch, options)
	if err != nil {
		s.failed(ctx, err)
		return nil, err
	}
	s.report(nil)
	s.markAlive()
	return newRelayedWatch(ctx, opened, func(event watch.Event) watch.Event {
		if event.Type == watch.Error {
			s.failed(ctx, apierrors.FromObject(event.Object))
			return event
		}
		s.markAlive()
		return event
	}), nil
}

// markAlive notes that the watch is alive.
func (s *stream) markAlive() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.heard = time.Now()
}

func (s *stream) lastHeard() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.heard
}

// failed takes note of an error. Expired is not a failure: the stream starts again at once, with Listed.
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

// report passes on a state that differs from the last one in more than its wording; nil stands for an open watch.
func (s *stream) report(failure error) {
	s.stateMutex.Lock()
	defer s.stateMutex.Unlock()
	if s.ended || s.reported && sameState(s.failure, failure) {
		return
	}
	s.reported, s.failure = true, failure
	s.handler.State(s.watch, failure)
}

// state says whether the watch is open, or failing; it is neither before the first attempt has ended.
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

// store returns the Reflector's view of the handler. The Reflector passes no context to its store, which lives as
// long as the run that ctx belongs to.
func (s *stream) store(ctx context.Context) *forwarder {
	return &forwarder{
		started: func(resourceVersion string) {
			if !s.started(resourceVersion) {
				s.handler.Listed(ctx, s.watch, resourceVersion)
			}
		},
		changed: func(change Change) {
			resourceVersion := change.Object.GetResourceVersion()
			s.received.Inc()
			s.handler.Changed(ctx, s.watch, change)
			s.setPosition(resourceVersion)
		},
		progressed: s.setPosition,
	}
}

// forwarder is a store that stores nothing.
type forwarder struct {
	started    func(resourceVersion string)
	changed    func(Change)
	progressed func(resourceVersion string)
}

var (
	_ cache.ReflectorStore         = &forwarder{}
	_ cache.ReflectorBookmarkStore = &forwarder{}
)

// Add forwards an object that is new.
func (f *forwarder) Add(object any) error { return f.forward(Create, object) }

// Update forwards an object that has changed.
func (f *forwarder) Update(object any) error { return f.forward(Update, object) }

// Delete forwards an object that has gone.
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

// Resync has nothing to do.
func (f *forwarder) Resync() error { return nil }

func (f *forwarder) forward(operation Operation, object any) error {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("forwarding a %s: unexpected %T", operation, object)
	}
	f.changed(Change{Operation: operation, Object: full})
	return nil
}
