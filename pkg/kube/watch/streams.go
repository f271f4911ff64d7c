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

// Watch is what one stream watches: one resource type, in one namespace or, with an empty Namespace, in all (or of a
// type without namespaces).
type Watch struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// String is for logs and messages.
func (w Watch) String() string {
	name := w.Resource.GroupResource().String() + "/" + w.Resource.Version
	if w.Namespace == "" {
		return name
	}
	return name + " in " + w.Namespace
}

// Covers says whether w brings everything that other brings.
func (w Watch) Covers(other Watch) bool {
	return w.Resource == other.Resource && (w.Namespace == "" || w.Namespace == other.Namespace)
}

// Operation is what happened to an object, in the words of rules.
type Operation string

const (
	// Create also stands for an object that has moved into what is watched.
	Create Operation = "CREATE"
	// Update is any change, of status and metadata too.
	Update Operation = "UPDATE"
	// Delete comes with the last state of the object, under the resourceVersion of its deletion.
	Delete Operation = "DELETE"
)

// Change is one event of a watch.
type Change struct {
	Operation Operation
	// Object belongs to the Handler, which may keep or change it.
	Object *unstructured.Unstructured
}

// Handler receives what streams bring. Calls for one Watch come one after the other, except State, which may come
// beside another; calls for different ones come at the same time. After Set has returned without a Watch, or Run has
// returned, there are no more calls for it.
type Handler interface {
	// Listed says that the watch (re)starts at resourceVersion and that whatever happened before has to be found out by
	// a list that begins after this call; it should queue one and return. A list that was begun earlier does not count.
	// Changes after resourceVersion follow.
	Listed(ctx context.Context, watch Watch, resourceVersion string)
	// Changed delivers the changes of a Watch in order. It may block, until ctx ends at the latest: the watch waits,
	// and starts again with Listed if the API server runs out of patience.
	Changed(ctx context.Context, watch Watch, change Change)
	// State says how the watch is when that has changed: nil means that it is open, an error why it is not, and that it
	// is tried again after 0.5 to 30 seconds. A watch that ends in the ordinary way, or because its resourceVersion has
	// expired, is opened again without a word. Errors with the same metav1.StatusReason count as one. State must return
	// quickly.
	State(watch Watch, failure error)
}

// Streams runs one stream per Watch for everybody who needs it.
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

// NewStreams returns streams of what the reader reads, which start with Run. Metrics tell of them by the name of the
// controller.
func NewStreams(controller string, reader Reader, handler Handler) *Streams {
	return &Streams{
		controller: controller, reader: reader, handler: handler, requests: make(chan setRequest), stopped: make(chan struct{}),
	}
}

// Run runs streams as Set asks for until ctx ends, and returns when all have made their last call. It is called once.
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

// Set makes the running streams those of watches: what runs already goes on undisturbed, the rest is started or
// stopped. A Watch that another one covers is left out; what it would bring comes under the wider one. Set waits for
// Run to be started and for the streams that it stops. An error of ctx leaves open whether the change was made. Set must
// not be called from a Handler.
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

// Effective returns the watches that Set runs for those given: each once, without those that another one covers, in
// a fixed order.
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

// runningStream is a stream's end as Run holds it.
type runningStream struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// apply stops first and starts then, so that no object comes under two watches at the same time.
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
