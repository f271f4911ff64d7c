// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// ErrStopped is returned by Streams.Set once Run has ended.
var ErrStopped = errors.New("the streams have been stopped")

// Watch is the scope of one stream: one resource type in one namespace. An empty Namespace means all namespaces, or a type
// without namespaces.
type Watch struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// String returns a name for logs and messages.
func (w Watch) String() string {
	name := w.Resource.GroupResource().String() + "/" + w.Resource.Version
	if w.Namespace == "" {
		return name
	}
	return name + " in " + w.Namespace
}

// Covers reports whether w receives every event that other receives.
func (w Watch) Covers(other Watch) bool {
	return w.Resource == other.Resource && (w.Namespace == "" || w.Namespace == other.Namespace)
}

// Operation is the kind of an event, as admission rules name it.
type Operation string

const (
	// Create is also the operation of an object that starts to match the watch.
	Create Operation = "CREATE"
	// Update is any change, including those of status and metadata.
	Update Operation = "UPDATE"
	// Delete has the last state of the object, with the resourceVersion of its deletion.
	Delete Operation = "DELETE"
)

// Change is one event of a watch.
type Change struct {
	Operation Operation
	// Object is owned by the Handler, which may keep or change it.
	Object *unstructured.Unstructured
}

// Handler handles the events of streams. Calls for one Watch are sequential, except those of State. Calls for different ones
// are concurrent. After Set has returned without a Watch, or Run has returned, there are no more calls for it.
type Handler interface {
	// Listed is called when the watch starts or restarts at resourceVersion. Earlier events may have been missed: the
	// handler should queue a list and return. The list must begin after this call. Later changes are passed to Changed.
	Listed(ctx context.Context, watch Watch, resourceVersion string)
	// Changed is called for the changes of a Watch, in order. It may block until ctx ends. The watch waits meanwhile, and
	// restarts with Listed if the API server times out.
	Changed(ctx context.Context, watch Watch, change Change)
	// State is called when the state of the watch changes. nil means that it is open. An error is the reason why it is not;
	// the stream retries after 0.5 to 30 seconds. It is not called when a watch ends normally, or because its
	// resourceVersion has expired, and is opened again. Errors with the same metav1.StatusReason are the same state. State
	// must return quickly.
	State(watch Watch, failure error)
}

// Streams runs one stream for each Watch.
type Streams struct {
	controller string
	reader     Reader
	handler    Handler
	requests   chan setRequest
	stopped    chan struct{}
}

type setRequest struct {
	watches []Watch
	done    chan struct{}
}

// NewStreams returns Streams that read through reader and start with Run. controller is a label of their metrics.
func NewStreams(controller string, reader Reader, handler Handler) *Streams {
	return &Streams{
		controller: controller, reader: reader, handler: handler, requests: make(chan setRequest), stopped: make(chan struct{}),
	}
}

// Run runs the streams that Set requests until ctx ends. It returns after their last calls. It must be called once.
func (s *Streams) Run(ctx context.Context) {
	defer close(s.stopped)
	running := map[Watch]*runningStream{}
	for {
		select {
		case <-ctx.Done():
			s.apply(ctx, running, nil)
			return
		case request := <-s.requests:
			s.apply(ctx, running, request.watches)
			close(request.done)
		}
	}
}

// Set starts and stops streams so that exactly one runs for each of watches. Streams that already run continue. A Watch in
// one namespace has no stream if there is one of the same type for all namespaces, which receives its events. Set waits
// for Run to be started and for the streams that it stops. If it returns an error of ctx, the change may have been made or
// not. Set must not be called from a Handler.
func (s *Streams) Set(ctx context.Context, watches []Watch) error {
	request := setRequest{watches: watches, done: make(chan struct{})}
	select {
	case s.requests <- request:
	case <-s.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-request.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Effective returns the watches that Set runs: sorted, unique, and without those in one namespace of a type that is
// watched in all.
func Effective(watches []Watch) []Watch {
	wide := sets.New[schema.GroupVersionResource]()
	for _, watch := range watches {
		if watch.Namespace == "" {
			wide.Insert(watch.Resource)
		}
	}
	effective := slices.DeleteFunc(slices.Clone(watches), func(watch Watch) bool {
		return watch.Namespace != "" && wide.Has(watch.Resource)
	})
	slices.SortFunc(effective, func(a, b Watch) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(effective)
}

// runningStream stops a stream that Run has started.
type runningStream struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// apply stops streams before it starts others, so that no object is received from two watches at the same time.
func (s *Streams) apply(ctx context.Context, running map[Watch]*runningStream, watches []Watch) {
	wanted := sets.New(Effective(watches)...)
	var stopping []*runningStream
	for watch, stream := range running {
		if !wanted.Has(watch) {
			stream.cancel()
			stopping = append(stopping, stream)
			delete(running, watch)
		}
	}
	for _, stream := range stopping {
		<-stream.done
	}
	started := 0
	for watch := range wanted {
		if _, ok := running[watch]; !ok {
			running[watch] = s.start(ctx, watch)
			started++
		}
	}
	if started+len(stopping) > 0 {
		klog.FromContext(ctx).V(2).Info("Changed the watches", "started", started, "stopped", len(stopping), "running", len(running))
	}
}

func (s *Streams) start(ctx context.Context, watch Watch) *runningStream {
	ctx, cancel := context.WithCancel(ctx)
	running := &runningStream{cancel: cancel, done: make(chan struct{})}
	stream := newStream(s.controller, watch, s.reader, s.handler)
	go func() {
		defer close(running.done)
		defer cancel()
		stream.run(ctx)
	}()
	return running
}
