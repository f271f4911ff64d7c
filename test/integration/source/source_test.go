// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// TestCustomResourceType installs and removes a custom resource type while streams run. Both must be noticed without a restart.
func TestCustomResourceType(t *testing.T) {
	checkGoroutines(t)
	clients, _ := connect(t, cluster.Admin())
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	watch := kubewatch.Watch{Resource: schema.GroupVersionResource{Group: "arriving.example.com", Version: "v1", Resource: "things"}}
	c, streams := runConsumer(t, clients.Dynamic, watch)
	selection := kubewatch.Selection{Resources: []string{"*.arriving.example.com"}}
	discovered := follow(t, clients, streams, selection)

	start := time.Now()
	things := define(t, admin, "arriving.example.com")
	eventually(t, "the type to be watched", func(context.Context) (bool, error) { return c.watching(watch), nil })
	t.Logf("watched %v after the definition was created", time.Since(start).Round(time.Millisecond))

	create(t, admin, things, object("arriving.example.com/v1", "Thing", namespace, "one"))
	eventually(t, "the object", func(context.Context) (bool, error) { return c.has(namespace, "one"), nil })

	start = time.Now()
	if err := admin.Resource(definitions).Delete(t.Context(), "things.arriving.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object to be deleted", func(context.Context) (bool, error) { return !c.has(namespace, "one"), nil })
	eventually(t, "the type to be removed", func(context.Context) (bool, error) {
		types, _ := discovered.Snapshot().Resolve(selection, kubewatch.Policy{})
		return len(types) == 0, nil
	})
	t.Logf("removed %v after the definition was deleted", time.Since(start).Round(time.Millisecond))
}

// follow runs discovery and sets the streams to the types of a selection.
func follow(t *testing.T, clients *kubewatch.Clients, streams *kubewatch.Streams, selection kubewatch.Selection) *kubewatch.Types {
	t.Helper()
	discovered, err := kubewatch.NewTypes(clients.Discovery, clients.Metadata, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	snapshots := make(chan *kubewatch.Snapshot, 100)
	discovered.Subscribe(func(snapshot *kubewatch.Snapshot) { snapshots <- snapshot })
	run(t, discovered.Run)
	run(t, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case snapshot := <-snapshots:
				types, _ := snapshot.Resolve(selection, kubewatch.DefaultPolicy())
				var watches []kubewatch.Watch
				for _, each := range types {
					watches = append(watches, kubewatch.Watch{Resource: each.Resource})
				}
				if err := streams.Set(ctx, watches); err != nil && ctx.Err() == nil {
					t.Errorf("set the watches: %v", err)
				}
			}
		}
	})
	eventually(t, "the first discovery", func(context.Context) (bool, error) { return discovered.Snapshot() != nil, nil })
	return discovered
}

func TestPresetCanBeWatched(t *testing.T) {
	checkGoroutines(t)
	clients, _ := connect(t, cluster.Admin())
	handler := newObserver()
	streams := runStreams(t, clients.Dynamic, handler)
	policy := kubewatch.DefaultPolicy()
	policy.Default = nil
	discovered, err := kubewatch.NewTypes(clients.Discovery, clients.Metadata, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	run(t, discovered.Run)
	eventually(t, "the first discovery", func(context.Context) (bool, error) { return discovered.Snapshot() != nil, nil })

	preset, unmatched := discovered.Snapshot().Resolve(kubewatch.Selection{}, kubewatch.DefaultPolicy())
	served := slices.DeleteFunc(slices.Clone(kubewatch.DefaultPolicy().Default), func(t schema.GroupResource) bool {
		return t.Group == "gateway.networking.k8s.io" // The Gateway API is optional.
	})
	if len(preset) != len(served) || len(unmatched) > 0 {
		t.Errorf("preset: got %v, want %v, unmatched %v", preset, served, unmatched)
	}
	all, _ := discovered.Snapshot().Resolve(kubewatch.Selection{}, policy)
	start := time.Now()
	var watches []kubewatch.Watch
	for _, each := range all {
		watches = append(watches, kubewatch.Watch{Resource: each.Resource})
	}
	if err := streams.Set(t.Context(), watches); err != nil {
		t.Fatal(err)
	}
	for _, watch := range watches {
		eventually(t, watch.String(), func(context.Context) (bool, error) { return handler.watching(watch), nil })
	}
	t.Logf("%d watches open after %v", len(watches), time.Since(start).Round(time.Millisecond))
}

func TestForbiddenType(t *testing.T) {
	checkGoroutines(t)
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	user, err := cluster.User("reader-of-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	clients, _ := connect(t, user)
	watch := kubewatch.Watch{Resource: configMaps, Namespace: namespace}
	c := consume(t, clients.Dynamic, watch)
	var failure error
	eventually(t, "the forbidden error", func(context.Context) (bool, error) {
		failure = c.failure(watch)
		return apierrors.IsForbidden(failure), nil
	})
	if !strings.Contains(failure.Error(), `cannot list resource "configmaps"`) {
		t.Errorf("got %v, want the missing permission", failure)
	}

	allow(t, admin, namespace, "reader-of-"+namespace)
	create(t, admin, configMaps, object("v1", "ConfigMap", namespace, "one"))
	eventually(t, "the object", func(context.Context) (bool, error) { return c.has(namespace, "one"), nil })
}

func allow(t *testing.T, admin dynamic.Interface, namespace, user string) {
	t.Helper()
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	role := object(rbac.String(), "Role", namespace, "reader")
	role.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"list", "watch"},
	}}
	create(t, admin, rbac.WithResource("roles"), role)
	binding := object(rbac.String(), "RoleBinding", namespace, "reader")
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbac.Group, "kind": "Role", "name": "reader"}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": rbac.Group, "kind": "User", "name": user}}
	create(t, admin, rbac.WithResource("rolebindings"), binding)
}

// TestNoChangeIsLost changes objects concurrently while connections are closed. The consumer must end with the content of the
// cluster.
func TestNoChangeIsLost(t *testing.T) {
	checkGoroutines(t)
	const writers, rounds, names = 4, 150, 20
	clients, open := connect(t, cluster.Admin())
	admin := administrator(t)
	namespace := createNamespace(t, admin)
	for i := range 1200 {
		create(t, admin, configMaps, object("v1", "ConfigMap", namespace, fmt.Sprintf("steady-%04d", i)))
	}

	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for round := range rounds {
				write(t, admin, namespace, fmt.Sprintf("changing-%d-%02d", writer, rand.IntN(names)), round)
				if writer == 0 && round%50 == 25 {
					open.cut()
				}
			}
		})
	}
	watch := kubewatch.Watch{Resource: configMaps, Namespace: namespace}
	c := consume(t, clients.Dynamic, watch)
	writing.Wait()

	want := contentOf(t, admin, namespace)
	var difference string
	defer func() {
		if t.Failed() {
			t.Log(difference)
		}
	}()
	eventually(t, "the same content", func(context.Context) (bool, error) {
		restarts, lists := c.counts()
		difference = differences(c.content(), want)
		if lists > 0 && difference == "" {
			t.Logf("%d objects after %d lists and %d restarts of the watch", len(want), lists, restarts)
			return true, nil
		}
		return false, nil
	})
}

// write creates, changes or deletes one object.
func write(t *testing.T, admin dynamic.Interface, namespace, name string, round int) {
	o := object("v1", "ConfigMap", namespace, name)
	o.Object["data"] = map[string]any{"round": fmt.Sprint(round)}
	client := admin.Resource(configMaps).Namespace(namespace)
	var err error
	switch rand.IntN(3) {
	case 0:
		_, err = client.Create(t.Context(), o, metav1.CreateOptions{})
	case 1:
		_, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
	default:
		err = client.Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		t.Errorf("write %s: %v", name, err)
	}
}

func contentOf(t *testing.T, admin dynamic.Interface, namespace string) map[types.NamespacedName]string {
	t.Helper()
	list, err := admin.Resource(configMaps).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	content := map[types.NamespacedName]string{}
	for i := range list.Items {
		content[nameOf(&list.Items[i])] = list.Items[i].GetResourceVersion()
	}
	return content
}
