// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// TestListSurvivesCompaction compacts etcd during a paginated list. The API server then offers a token to continue at the current
// revision, and no object may be missing. Events are the only built-in type that the API server reads from etcd directly.
func TestListSurvivesCompaction(t *testing.T) {
	checkGoroutines(t)
	clients, open := connect(t, cluster.Admin())
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	const count = 1001 // two pages and one object
	for i := range count {
		createEvent(t, admin, namespace, fmt.Sprintf("event-%05d", i))
	}
	seen := map[string]int{}
	watch := kubewatch.Watch{Resource: events, Namespace: namespace}
	lister := kubewatch.NewLister(kubewatch.Objects(clients.Dynamic))
	version, err := lister.List(t.Context(), watch, func(o *unstructured.Unstructured, _ string) error {
		if len(seen) == 0 {
			createEvent(t, admin, namespace, "event-99999")
			compact(t)
		}
		seen[o.GetName()]++
		return nil
	})
	if err != nil || version == "" {
		t.Fatalf("got resourceVersion %q, %v", version, err)
	}
	if open.responseCount(http.StatusGone) == 0 {
		t.Error("no continue token has expired")
	}
	for i := range count {
		if name := fmt.Sprintf("event-%05d", i); seen[name] != 1 {
			t.Errorf("%s was listed %d times, want once", name, seen[name])
		}
	}
}

// TestCompactionDuringDisconnect deletes an object and compacts the history of the deletion while the stream cannot connect.
func TestCompactionDuringDisconnect(t *testing.T) {
	checkGoroutines(t)
	clients, open := connect(t, cluster.Admin())
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	watch := kubewatch.Watch{Resource: events, Namespace: namespace}
	createEvent(t, admin, namespace, "deleted")
	createEvent(t, admin, namespace, "kept")
	c := consume(t, clients.Dynamic, watch)
	eventually(t, "the objects", func(context.Context) (bool, error) {
		_, lists := c.counts()
		return lists > 0 && c.has(namespace, "deleted") && c.watching(watch), nil
	})

	before, _ := c.counts()
	open.refuse(true)
	eventually(t, "the loss of the connection", func(context.Context) (bool, error) {
		return c.failure(watch) != nil, nil
	})
	if err := admin.Resource(events).Namespace(namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createEvent(t, admin, namespace, "created")
	compact(t)
	open.refuse(false)

	eventually(t, "the content", func(context.Context) (bool, error) {
		content := !c.has(namespace, "deleted") && c.has(namespace, "created") && c.has(namespace, "kept")
		return content && c.watching(watch), nil
	})
	if restarts, _ := c.counts(); restarts <= before {
		t.Errorf("%d calls of Listed, want more than the %d before the compaction", restarts, before)
	}
}

func createEvent(t *testing.T, admin dynamic.Interface, namespace, name string) {
	t.Helper()
	o := object("v1", "Event", namespace, name)
	o.Object["involvedObject"] = map[string]any{"kind": "Namespace", "name": namespace, "namespace": namespace}
	create(t, admin, events, o)
}

// compact compacts etcd to the current revision.
func compact(t *testing.T) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{cluster.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	present, err := client.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), present.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}
