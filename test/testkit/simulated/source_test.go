// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/simulated"
)

// count is the number of simulated ConfigMaps, which need three pages of page.
const count, page = 25, 10

func object(number int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("shop-%d", number/10), Name: fmt.Sprintf("settings-%03d", number)},
		Data:       map[string]string{"number": fmt.Sprint(number)},
	}
}

// newClient returns a client of a source with the given ConfigMaps, behind which is a server that refuses all requests.
func newClient(t *testing.T) kubernetes.Interface {
	t.Helper()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	next, err := simulated.Proxy(&rest.Config{Host: refusing.URL})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(simulated.NewSource(count, object, next))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// update changes a ConfigMap.
func update(t *testing.T, client kubernetes.Interface, number int, value string) {
	t.Helper()
	changed := object(number)
	changed.Data["number"] = value
	if _, err := client.CoreV1().ConfigMaps(changed.Namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestInformer has a client-go informer follow the source.
func TestInformer(t *testing.T) {
	client := newClient(t)
	update(t, client, 3, "before")
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSyncWithContext(ctx)
	has := func(want map[int]string) func(context.Context) error {
		return func(context.Context) error {
			for number := range count {
				value, changed := want[number]
				if !changed {
					value = fmt.Sprint(number)
				}
				found, err := lister.ConfigMaps(object(number).Namespace).Get(object(number).Name)
				if err != nil || found.Data["number"] != value || found.UID == "" {
					return fmt.Errorf("ConfigMap %d: %+v, error %w", number, found, err)
				}
			}
			return nil
		}
	}
	testkit.EventuallyWithin(t, testkit.Timeout, "all ConfigMaps are listed", has(map[int]string{3: "before"}))
	update(t, client, 3, "after")
	update(t, client, 24, "after")
	testkit.EventuallyWithin(t, testkit.Timeout, "changes are watched", has(map[int]string{3: "after", 24: "after"}))
}

// TestPages changes a ConfigMap between two pages of a list, which both have the state of the first.
func TestPages(t *testing.T) {
	client := newClient(t)
	options, listed := metav1.ListOptions{Limit: page}, []corev1.ConfigMap{}
	for pages := 0; pages == 0 || options.Continue != ""; pages++ {
		list, err := client.CoreV1().ConfigMaps("").List(t.Context(), options)
		if err != nil || list.ResourceVersion != fmt.Sprint(count) {
			t.Fatalf("page %d: resourceVersion %s, error %v", pages, list.ResourceVersion, err)
		}
		update(t, client, 24, "later")
		options.Continue, listed = list.Continue, append(listed, list.Items...)
	}
	if len(listed) != count || listed[24].Data["number"] != "24" || listed[24].ResourceVersion != "25" {
		t.Errorf("%d ConfigMaps, the last is %+v", len(listed), listed[len(listed)-1])
	}
}

// TestOtherRequests sends requests that the server behind the source serves.
func TestOtherRequests(t *testing.T) {
	client := newClient(t)
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other"}}
	_, updating := client.CoreV1().ConfigMaps(other.Namespace).Update(t.Context(), other, metav1.UpdateOptions{})
	_, reading := client.CoreV1().ConfigMaps(other.Namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(updating) || !apierrors.IsForbidden(reading) {
		t.Errorf("got errors %v and %v", updating, reading)
	}
}
