// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit"
)

// changedObjects is a Handler that stores the objects of changes.
type changedObjects struct {
	mutex   sync.Mutex
	objects []*unstructured.Unstructured
}

func (*changedObjects) Listed(context.Context, watch.Watch, string) {}

func (k *changedObjects) Changed(_ context.Context, _ watch.Watch, change watch.Change) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.objects = append(k.objects, change.Object)
}

func (*changedObjects) State(watch.Watch, error) {}

// wait waits until there are count objects, and returns them.
func (k *changedObjects) wait(t *testing.T, count int) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	testkit.EventuallyTrue(t, "changes", func() bool {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		objects = k.objects
		return len(objects) >= count
	})
	return objects
}

// bareWidget is a widget as a client that reads only metadata gets it.
func bareWidget(name, version string) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "metadata": map[string]any{
		"namespace": "shop", "name": name, "resourceVersion": version, "labels": map[string]any{"tier": "front"},
		"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update"}},
	}}
}

func TestOnlyMetadataIsRequested(t *testing.T) {
	server, config := newAPIServer(t)
	reader := metadataOnly(t, config)
	server.happen("ADDED", "a")
	var listed []map[string]any
	_, err := watch.NewLister(reader).List(t.Context(), shopWidgets, func(object *unstructured.Unstructured, _ string) error {
		listed = append(listed, object.Object)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]any{bareWidget("a", "101")}, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}

	handler := &changedObjects{}
	set(t, runStreams(t, reader, handler), shopWidgets)
	server.expectWatching(t, 1)
	server.happen("MODIFIED", "a")
	server.happen("DELETED", "a")
	watched := handler.wait(t, 2)
	for i, version := range []string{"102", "103"} {
		if diff := cmp.Diff(bareWidget("a", version), watched[i].Object); diff != "" {
			t.Errorf("change %d (-want +got):\n%s", i, diff)
		}
	}

	// The client's last resort, for servers that know no metadata, comes last and is not needed.
	for i, accept := range server.accept() {
		asked := strings.TrimSuffix(accept, ",application/json")
		for media := range strings.SplitSeq(asked, ",") {
			if !strings.Contains(media, ";as=PartialObjectMetadata") || !strings.HasSuffix(media, ";g=meta.k8s.io;v=v1") {
				t.Errorf("%s accepts %s", server.seen()[i], media)
			}
		}
	}
}

func TestObjectsAreRead(t *testing.T) {
	server, config := newAPIServer(t)
	handler := &changedObjects{}
	set(t, runStreams(t, objects(t, config), handler), shopWidgets)
	server.expectWatching(t, 1)
	server.happen("ADDED", "a")
	if diff := cmp.Diff(widget("a", 101), handler.wait(t, 1)[0]); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// The API server is asked for no object that the selector does not match, by lists and watches.
func TestLabelledIsSelectedByTheServer(t *testing.T) {
	server, config := newAPIServer(t)
	selector := map[schema.GroupResource]string{{Group: "example.com", Resource: "widgets"}: "made-by notin (a,b)"}
	reader := watch.Labelled(objects(t, config), func(resource schema.GroupResource) string { return selector[resource] })
	_, err := watch.NewLister(reader).List(t.Context(), shopWidgets, func(*unstructured.Unstructured, string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	set(t, runStreams(t, reader, &changedObjects{}), shopWidgets)
	server.expectWatching(t, 1)
	requests := server.seen()
	watched := false
	for _, request := range requests {
		address, err := url.Parse(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := address.Query().Get("labelSelector"); got != "made-by notin (a,b)" {
			t.Errorf("%s selects %q", request, got)
		}
		watched = watched || address.Query().Get("watch") == "true"
	}
	if !watched {
		t.Errorf("nothing is watched: %q", requests)
	}
}
