// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/devcluster"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// connections are the connections of a client, which a test can close and count responses on.
type connections struct {
	mutex sync.Mutex
	open  []net.Conn
	// refused makes new connections fail.
	refused bool
	// responses counts responses by HTTP status.
	responses map[int]int
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.refused {
		_ = connection.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	c.open = append(c.open, connection)
	return connection, nil
}

// refuse closes all connections and makes new ones fail until it is called with false.
func (c *connections) refuse(refused bool) {
	c.mutex.Lock()
	c.refused = refused
	c.mutex.Unlock()
	if refused {
		c.cut()
	}
}

func (c *connections) cut() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, connection := range c.open {
		_ = connection.Close()
	}
	c.open = nil
}

func (c *connections) responseCount(status int) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.responses[status]
}

// observe counts the responses of a transport.
func (c *connections) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.responses[response.StatusCode]++
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// configFor returns a configuration for the user, with connections that are closed when the test ends.
func configFor(t *testing.T, user devcluster.Kubeconfig) (*rest.Config, *connections) {
	t.Helper()
	config, err := user.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	open := &connections{responses: map[int]int{}}
	config.Dial = open.dial
	config.Wrap(open.observe)
	t.Cleanup(open.cut)
	return config, open
}

// connect returns clients of the code under test for the user.
func connect(t *testing.T, user devcluster.Kubeconfig) (*watch.Clients, *connections) {
	t.Helper()
	config, open := configFor(t, user)
	clients, err := watch.NewClients(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients, open
}

// administrator returns the client for changes of the cluster.
func administrator(t *testing.T) dynamic.Interface {
	t.Helper()
	config, _ := configFor(t, cluster.Admin())
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func create(
	t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource, o *unstructured.Unstructured,
) *unstructured.Unstructured {
	t.Helper()
	created, err := client.Resource(resource).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", resource.Resource, o.GetName(), err)
	}
	return created
}

// createNamespace creates a namespace with a unique name.
func createNamespace(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	o := object("v1", "Namespace", "", "")
	o.SetGenerateName("source-")
	return create(t, client, namespaces, o).GetName()
}

// define installs a namespaced custom resource definition things.GROUP with version v1.
func define(t *testing.T, client dynamic.Interface, group string) schema.GroupVersionResource {
	t.Helper()
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+group)
	o.Object["spec"] = map[string]any{
		"group": group, "scope": "Namespaced",
		"names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}
	create(t, client, definitions, o)
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
}
