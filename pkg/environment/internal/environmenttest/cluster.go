// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environmenttest provides tests with a cluster that stores namespaced objects, and merges applied ones as API servers do.
package environmenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// Cluster implements the part of an API server's protocol that syncs of environments use. It validates nothing, and sets no defaults.
type Cluster struct {
	testing.TB
	// HasGatewayAPI is set if mappers know the Gateway API.
	HasGatewayAPI bool

	server *httptest.Server

	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured
	version  int
	requests []string
	answer   func(request string) *metav1.Status
}

// NewCluster starts a cluster that ends with the test.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{TB: t, objects: map[string]*unstructured.Unstructured{}}
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.server.Close)
	return c
}

// Mapper knows the types of the cluster: those that are built in, and of example.com/v1 Widget, Oddity, whose resource is called things,
// and Planet, which is in no namespace.
func (c *Cluster) Mapper() meta.RESTMapper {
	v1 := schema.GroupVersion{Group: "example.com", Version: "v1"}
	custom := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1, {Group: gatewayv1.GroupName, Version: "v1"}})
	custom.Add(v1.WithKind("Widget"), meta.RESTScopeNamespace)
	custom.AddSpecific(v1.WithKind("Oddity"), v1.WithResource("things"), v1.WithResource("thing"), meta.RESTScopeNamespace)
	custom.Add(v1.WithKind("Planet"), meta.RESTScopeRoot)
	if c.HasGatewayAPI {
		for _, kind := range plan.GatewayAPIKinds() {
			custom.Add(kind.WithVersion("v1"), meta.RESTScopeNamespace)
		}
	}
	return meta.MultiRESTMapper{testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme), custom}
}

// Client reads and writes objects.
func (c *Cluster) Client() dynamic.Interface {
	c.Helper()
	client, err := dynamic.NewForConfig(c.config())
	if err != nil {
		c.Fatal(err)
	}
	return client
}

// Metadata reads objects without their content.
func (c *Cluster) Metadata() metadata.Interface {
	c.Helper()
	client, err := metadata.NewForConfig(c.config())
	if err != nil {
		c.Fatal(err)
	}
	return client
}

func (c *Cluster) config() *rest.Config { return &rest.Config{Host: c.server.URL, QPS: -1} }

// Object reads an object that is written as YAML.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Put puts an object, as another client does.
func (c *Cluster) Put(o *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o = o.DeepCopy()
	if before := c.objects[keyOf(o)]; before != nil {
		o.SetUID(before.GetUID())
		o.SetManagedFields(before.GetManagedFields())
	}
	c.store(o)
}

// Drop deletes an object.
func (c *Cluster) Drop(resource, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, resource+"/"+namespace+"/"+name)
}

// Live returns an object, nil if it does not exist.
func (c *Cluster) Live(resource, namespace, name string) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[resource+"/"+namespace+"/"+name].DeepCopy()
}

// Names returns the objects in a namespace, as "configmaps/settings", in order.
func (c *Cluster) Names(namespace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := []string{}
	for key := range c.objects {
		if parts := strings.Split(key, "/"); parts[1] == namespace {
			names = append(names, parts[0]+"/"+parts[2])
		}
	}
	slices.Sort(names)
	return names
}

// TakeRequests returns the requests since it was called last, as "GET production/configmaps/settings" or "dry PATCH ...".
func (c *Cluster) TakeRequests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Answer sets a function that is called with each request. The status that it returns is the response; nil leaves that to the cluster. It
// may change objects.
func (c *Cluster) Answer(answer func(request string) *metav1.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// Process is a testkit.Process, which packages below pkg cannot import.
type Process interface {
	Alive() error
	Count() error
}

// CountWrites is an Answer that counts the requests that write as writes of a process, and fails all once it is dead.
func CountWrites(process Process) func(request string) *metav1.Status {
	return func(request string) *metav1.Status {
		err := process.Alive()
		method, _, _ := strings.Cut(request, " ")
		if err == nil && slices.Contains([]string{http.MethodPatch, http.MethodDelete, http.MethodPost}, method) {
			err = process.Count()
		}
		if err != nil {
			return Status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
		}
		return nil
	}
}

// Status returns a response about a failure.
func Status(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}

// request is a request to the cluster.
type request struct {
	*http.Request
	body []byte
	// version is that of the API in the path.
	version                   string
	resource, namespace, name string
	dry                       bool
}

func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	c.mu.Lock()
	c.requests = append(c.requests, q.String())
	instead := c.answer
	c.mu.Unlock()
	code, answer := c.respond(q, instead)
	content, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(content) // The client may have closed the connection.
}

func parse(r *http.Request) *request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	q := &request{Request: r, body: body}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if q.version = parts[1]; parts[0] == "apis" {
		q.version = parts[1] + "/" + parts[2]
		parts = parts[1:]
	}
	parts = parts[2:]
	if len(parts) > 2 {
		q.namespace, parts = parts[1], parts[2:]
	}
	if q.resource = parts[0]; len(parts) > 1 {
		q.name = parts[1]
	}
	q.dry = r.URL.Query().Has("dryRun") || r.Method == http.MethodDelete && strings.Contains(string(body), `"dryRun"`)
	return q
}

func (q *request) key() string { return q.resource + "/" + q.namespace + "/" + q.name }

func (q *request) String() string {
	place := slices.DeleteFunc([]string{q.namespace, q.resource, q.name}, func(part string) bool { return part == "" })
	text := q.Method + " " + strings.Join(place, "/")
	if q.dry {
		return "dry " + text
	}
	return text
}

func (c *Cluster) respond(q *request, instead func(request string) *metav1.Status) (int, any) {
	if instead != nil {
		if status := instead(q.String()); status != nil {
			return int(status.Code), status
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch live := c.objects[q.key()]; {
	case q.name == "" && q.Method == http.MethodGet:
		return http.StatusOK, c.list(q)
	case q.Method == http.MethodPost:
		return http.StatusCreated, json.RawMessage(q.body)
	case q.Method == http.MethodPatch && q.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType):
		return c.apply(q, live)
	case live == nil:
		return http.StatusNotFound, Status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", q.resource, q.name))
	case q.Method == http.MethodPatch:
		return c.patch(q, live)
	case q.Method == http.MethodPut:
		return http.StatusOK, json.RawMessage(q.body)
	case q.Method == http.MethodDelete:
		return c.delete(q, live)
	default:
		return http.StatusOK, q.shown(live)
	}
}

// isAboutMetadata says whether the content of objects was not asked for.
func (q *request) isAboutMetadata() bool {
	return strings.Contains(q.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// shown returns an object in the requested version, without its content if only metadata was requested.
func (q *request) shown(o *unstructured.Unstructured) map[string]any {
	shown := o.DeepCopy()
	if q.isAboutMetadata() {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": shown.Object["metadata"]}
	}
	shown.SetAPIVersion(q.version)
	return shown.Object
}

func (c *Cluster) store(o *unstructured.Unstructured) *unstructured.Unstructured {
	c.version++
	if o.GetUID() == "" {
		o.SetUID(types.UID(strconv.Itoa(c.version)))
	}
	o.SetResourceVersion(strconv.Itoa(c.version))
	c.objects[keyOf(o)] = o
	return o
}

func keyOf(o *unstructured.Unstructured) string {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return resource.Resource + "/" + o.GetNamespace() + "/" + o.GetName()
}
