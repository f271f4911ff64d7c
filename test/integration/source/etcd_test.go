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

// Events are the one built-in type that the API server reads from etcd directly: a compaction of etcd shows at once.

// An API server that compacts while a list goes on offers a token to go on at the present; nothing may be missed.
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
	version, err := kubewatch.NewLister(kubewatch.Objects(clients.Dynamic)).List(t.Context(), watch, func(o *unstructured.Unstructured) error {
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
	if open.answered(http.StatusGone) == 0 {
		t.Error("no continue token has expired")
	}
	for i := range count {
		if name := fmt.Sprintf("event-%05d", i); seen[name] != 1 {
			t.Errorf("%s came %d times, want once", name, seen[name])
		}
	}
}

// While the stream cannot connect, an object goes and the history that would tell of it is compacted.
func TestCompactionUnderAPausedWatchIsFoundOutByAList(t *testing.T) {
	checkGoroutines(t)
	clients, open := connect(t, cluster.Admin())
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	watch := kubewatch.Watch{Resource: events, Namespace: namespace}
	createEvent(t, admin, namespace, "goes")
	createEvent(t, admin, namespace, "stays")
	c := consume(t, clients.Dynamic, watch)
	eventually(t, "the objects", func(context.Context) (bool, error) {
		_, lists := c.counts()
		return lists == 1 && c.has(namespace, "goes") && c.watching(watch), nil
	})

	open.refuse(true)
	eventually(t, "the loss of the connection", func(context.Context) (bool, error) {
		return c.failure(watch) != nil, nil
	})
	if err := admin.Resource(events).Namespace(namespace).Delete(t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createEvent(t, admin, namespace, "comes")
	compact(t)
	open.refuse(false)

	eventually(t, "the content", func(context.Context) (bool, error) {
		content := !c.has(namespace, "goes") && c.has(namespace, "comes") && c.has(namespace, "stays")
		return content && c.watching(watch), nil
	})
	if restarts, _ := c.counts(); restarts < 2 {
		t.Errorf("got %d calls of Listed, want another one", restarts)
	}
}

func createEvent(t *testing.T, admin dynamic.Interface, namespace, name string) {
	t.Helper()
	o := object("v1", "Event", namespace, name)
	o.Object["involvedObject"] = map[string]any{"kind": "Namespace", "name": namespace, "namespace": namespace}
	create(t, admin, events, o)
}

// compact makes etcd forget all but the present.
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
