// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit"
)

var shopWidgets = watch.Watch{Resource: widgets, Namespace: "shop"}

// recorder is a Handler that records its calls, one line each.
type recorder struct {
	mutex  sync.Mutex
	lines  []string
	states []error
	// hold, if set, blocks Changed until it is closed or the context ends.
	hold chan struct{}
}

func (r *recorder) note(format string, arguments ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, arguments...))
}

func (r *recorder) Listed(_ context.Context, _ watch.Watch, resourceVersion string) {
	r.note("listed %s", resourceVersion)
}

func (r *recorder) Changed(ctx context.Context, _ watch.Watch, change watch.Change) {
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
		}
	}
	r.note("%s %s %s", change.Operation, change.Object.GetName(), change.Object.GetResourceVersion())
}

func (r *recorder) State(_ watch.Watch, failure error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.states = append(r.states, failure)
}

func (r *recorder) received() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.lines)
}

// reported returns the states in order: "watching" or the failure's message.
func (r *recorder) reported() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var reported []string
	for _, failure := range r.states {
		if failure == nil {
			reported = append(reported, "watching")
		} else {
			reported = append(reported, failure.Error())
		}
	}
	return reported
}

// expectStates waits until the handler has received exactly these.
func (r *recorder) expectStates(t *testing.T, want ...string) {
	t.Helper()
	testkit.EventuallyTrue(t, strings.Join(want, ", "), func() bool { return len(r.reported()) >= len(want) })
	if diff := cmp.Diff(want, r.reported()); diff != "" {
		t.Fatalf("states (-want +got):\n%s", diff)
	}
}

// expect waits until the handler has received exactly this.
func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	testkit.EventuallyTrue(t, strings.Join(want, ", "), func() bool { return len(r.received()) >= len(want) })
	if diff := cmp.Diff(want, r.received()); diff != "" {
		t.Fatalf("the handler received (-want +got):\n%s", diff)
	}
}

func runStreams(t *testing.T, reader watch.Reader, handler watch.Handler) *watch.Streams {
	t.Helper()
	streams := watch.NewStreams("test", reader, handler)
	run(t, streams.Run)
	return streams
}

func set(t *testing.T, streams *watch.Streams, watches ...watch.Watch) {
	t.Helper()
	if err := streams.Set(t.Context(), watches); err != nil {
		t.Fatal(err)
	}
}

func (s *apiServer) expectWatching(t *testing.T, count int) {
	t.Helper()
	testkit.EventuallyTrue(t, fmt.Sprintf("%d open watches", count), func() bool { return s.openWatches() == count })
}

func TestStreamBringsChangesInOrderAndListsNoObjects(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		server.happen("ADDED", "before")
		handler := &recorder{}
		set(t, runStreams(t, reader, handler), shopWidgets)
		handler.expect(t, "listed 101")
		server.expectWatching(t, 1)

		server.happen("ADDED", "a")
		server.happen("MODIFIED", "a")
		server.bookmark()
		server.happen("DELETED", "a")
		handler.expect(t, "listed 101", "CREATE a 102", "UPDATE a 103", "DELETE a 105")

		handler.expectStates(t, "watching")
		for _, request := range server.seen() {
			if !strings.Contains(request, "limit=1") && !strings.Contains(request, "watch=true") || strings.Contains(request, "sendInitialEvents") {
				t.Errorf("the stream asked for objects: %s", request)
			}
		}
	})
}

func TestStreamStartsAgainWhenItsVersionHasExpired(t *testing.T) {
	for name, end := range map[string]*metav1.Status{
		"an open watch fails":  expired(""),
		"the next watch fails": status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "restarting"),
	} {
		t.Run(name, func(t *testing.T) {
			eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
				handler := &recorder{}
				set(t, runStreams(t, reader, handler), shopWidgets)
				server.expectWatching(t, 1)
				server.happen("ADDED", "a")
				handler.expect(t, "listed 100", "CREATE a 101")

				server.compact(end)
				handler.expect(t, "listed 100", "CREATE a 101", "listed 102")
				server.expectWatching(t, 1)
				server.happen("ADDED", "b")
				handler.expect(t, "listed 100", "CREATE a 101", "listed 102", "CREATE b 103")
			})
		})
	}
}

func TestStreamContinuesAfterAnErrorWithoutListing(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{}
		set(t, runStreams(t, reader, handler), shopWidgets)
		server.expectWatching(t, 1)
		server.happen("ADDED", "a")
		handler.expect(t, "listed 100", "CREATE a 101")

		server.refuse(status(http.StatusForbidden, metav1.StatusReasonForbidden, "widgets is forbidden"))
		server.endWatches(status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "something broke"))
		asked := len(server.seen())
		testkit.EventuallyTrue(t, "the refusal to come twice", func() bool { return len(server.seen()) >= asked+2 })
		handler.expectStates(t, "watching", "something broke", "widgets is forbidden")
		server.happen("ADDED", "b")

		server.refuse(nil)
		handler.expect(t, "listed 100", "CREATE a 101", "CREATE b 102")
		handler.expectStates(t, "watching", "something broke", "widgets is forbidden", "watching")
	})
}

func TestStreamReportsWhyItCannotStart(t *testing.T) {
	for _, refusal := range []*metav1.Status{
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"),
		status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who are you"),
		status(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource"),
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no endpoints"),
		status(http.StatusBadRequest, metav1.StatusReasonUnknown, "what"),
	} {
		t.Run(refusal.Message, func(t *testing.T) {
			eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
				server.refuse(refusal)
				handler := &recorder{}
				set(t, runStreams(t, reader, handler), shopWidgets)
				handler.expectStates(t, refusal.Message)
				server.refuse(nil)
				handler.expect(t, "listed 100")
				handler.expectStates(t, refusal.Message, "watching")
			})
		})
	}
}

func TestStreamContinuesFromABookmark(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{}
		set(t, runStreams(t, reader, handler), shopWidgets)
		server.expectWatching(t, 1)
		server.happen("ADDED", "a")
		bookmark := server.bookmark()

		server.endWatches(status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "something broke"))
		testkit.EventuallyTrue(t, "a watch from the bookmark", func() bool {
			return slices.ContainsFunc(server.seen(), func(request string) bool {
				return strings.Contains(request, "watch=true") && strings.Contains(request, "resourceVersion="+bookmark)
			})
		})
		server.happen("ADDED", "b")
		handler.expect(t, "listed 100", "CREATE a 101", "CREATE b 103")
	})
}

func TestStreamNoticesThatTheClusterWasPutBack(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{}
		set(t, runStreams(t, reader, handler), shopWidgets)
		server.expectWatching(t, 1)
		server.happen("ADDED", "a")
		handler.expect(t, "listed 100", "CREATE a 101")

		server.restore(50)
		server.endWatches(status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "restarting"))
		handler.expect(t, "listed 100", "CREATE a 101", "listed 50")
	})
}

func TestSetStartsAndStopsWhatChanged(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{}
		streams := runStreams(t, reader, handler)

		set(t, streams, shopWidgets)
		server.expectWatching(t, 1)
		set(t, streams, shopWidgets, shopWidgets)
		handler.expect(t, "listed 100")

		wide := watch.Watch{Resource: widgets}
		set(t, streams, shopWidgets, wide)
		server.expectWatching(t, 1)
		handler.expect(t, "listed 100", "listed 100")

		set(t, streams)
		server.expectWatching(t, 0)
		server.happen("ADDED", "a")
		handler.expect(t, "listed 100", "listed 100")
	})
}

func TestSetEndsAHandlerThatBlocks(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{hold: make(chan struct{})}
		streams := runStreams(t, reader, handler)
		set(t, streams, shopWidgets)
		server.expectWatching(t, 1)
		server.happen("ADDED", "a")
		server.happen("ADDED", "b")
		handler.expect(t, "listed 100")

		set(t, streams)
		received := handler.received()
		if len(received) > 2 {
			t.Errorf("the handler received more after its context ended: %v", received)
		}
	})
}

func TestABlockingHandlerLosesNothing(t *testing.T) {
	eachReader(t, func(t *testing.T, server *apiServer, reader watch.Reader) {
		handler := &recorder{hold: make(chan struct{})}
		set(t, runStreams(t, reader, handler), shopWidgets)
		server.expectWatching(t, 1)
		want := []string{"listed 100"}
		for range 1000 {
			want = append(want, "CREATE a "+server.happen("ADDED", "a"))
		}
		handler.expect(t, "listed 100")
		close(handler.hold)
		handler.expect(t, want...)
	})
}

func TestSetAfterRunHasEnded(t *testing.T) {
	_, config := newAPIServer(t)
	streams := watch.NewStreams("test", objects(t, config), &recorder{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := streams.Set(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("before Run: got %v, want %v", err, context.Canceled)
	}
	streams.Run(ctx)
	if err := streams.Set(t.Context(), nil); !errors.Is(err, watch.ErrStopped) {
		t.Errorf("after Run: got %v, want %v", err, watch.ErrStopped)
	}
}

func TestEffective(t *testing.T) {
	wide, here, there := watch.Watch{Resource: widgets}, shopWidgets, watch.Watch{Resource: widgets, Namespace: "other"}
	other := watch.Watch{Resource: gadgets, Namespace: "shop"}
	for name, test := range map[string]struct{ given, want []watch.Watch }{
		"nothing":            {nil, nil},
		"each once":          {[]watch.Watch{here, there, here}, []watch.Watch{there, here}},
		"the wider one wins": {[]watch.Watch{here, wide, other, there}, []watch.Watch{other, wide}},
	} {
		t.Run(name, func(t *testing.T) {
			got := watch.Effective(test.given)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			for _, given := range test.given {
				if !slices.ContainsFunc(got, func(w watch.Watch) bool { return w.Covers(given) }) {
					t.Errorf("nothing covers %v", given)
				}
			}
		})
	}
}
