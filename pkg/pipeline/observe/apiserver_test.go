// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// apiServer implements the list and watch protocol of Kubernetes for some types: resourceVersions, paging, bookmarks and compaction.
type apiServer struct {
	mutex   sync.Mutex
	version int
	oldest  int
	served  map[string]*collection // by path
	changed chan struct{}
	// listing is the function of onList. Lists at the start of streams do not count.
	listing func(path string)
}

// collection has the objects of a type.
type collection struct {
	objects map[string]*unstructured.Unstructured
	history []event
	refusal *metav1.Status
	// ended counts how often the watches were closed.
	ended   int
	lists   int
	watches int
}

// event is a change of an object.
type event struct {
	name    string
	version int
	object  *unstructured.Unstructured
}

func newAPIServer(t testing.TB) (*apiServer, *rest.Config) {
	t.Helper()
	s := &apiServer{version: 100, served: map[string]*collection{}, changed: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s, &rest.Config{Host: server.URL, QPS: -1}
}

func pathOf(resource schema.GroupVersionResource) string {
	if resource.Group == "" {
		return "/api/" + resource.Version + "/" + resource.Resource
	}
	return "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource
}

// serve starts to serve a type.
func (s *apiServer) serve(resource schema.GroupVersionResource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.served[pathOf(resource)] = &collection{objects: map[string]*unstructured.Unstructured{}}
}

// drop stops serving a type.
func (s *apiServer) drop(resource schema.GroupVersionResource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.served[pathOf(resource)].ended++
	delete(s.served, pathOf(resource))
	s.wake()
}

// with changes the collection of a type under the lock.
func (s *apiServer) with(resource schema.GroupVersionResource, change func(*collection)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s.served[pathOf(resource)])
	s.wake()
}

// put creates or replaces an object.
func (s *apiServer) put(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	s.with(resource, func(c *collection) {
		s.version++
		object = object.DeepCopy()
		object.SetResourceVersion(strconv.Itoa(s.version))
		operation := "ADDED"
		if _, ok := c.objects[keyOf(object)]; ok {
			operation = "MODIFIED"
		}
		c.objects[keyOf(object)] = object
		c.history = append(c.history, event{operation, s.version, object})
	})
}

// remove deletes an object.
func (s *apiServer) remove(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	s.with(resource, func(c *collection) {
		s.version++
		object = object.DeepCopy()
		object.SetResourceVersion(strconv.Itoa(s.version))
		delete(c.objects, keyOf(object))
		c.history = append(c.history, event{"DELETED", s.version, object})
	})
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// refuse sets the status of all responses for a type; nil removes it.
func (s *apiServer) refuse(resource schema.GroupVersionResource, refusal *metav1.Status) {
	s.with(resource, func(c *collection) { c.refusal = refusal })
}

// onList sets a function that is called with the path of each list, before the response.
func (s *apiServer) onList(listing func(path string)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.listing = listing
}

// forget compacts the history and closes all watches.
func (s *apiServer) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	s.oldest = s.version
	for _, c := range s.served {
		c.history, c.ended = nil, c.ended+1
	}
	s.wake()
}

// wake wakes the watches. The caller holds the mutex.
func (s *apiServer) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// counts returns the number of lists of a type so far, and of its open watches.
func (s *apiServer) counts(resource schema.GroupVersionResource) (lists, watches int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if c, ok := s.served[pathOf(resource)]; ok {
		return c.lists, c.watches
	}
	return 0, 0
}

func status(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

func (s *apiServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	s.mutex.Lock()
	c, ok := s.served[request.URL.Path]
	listing := s.listing
	refusal := status(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	if ok {
		refusal = c.refusal
	}
	s.mutex.Unlock()
	switch {
	case refusal != nil:
		answer(response, int(refusal.Code), refusal)
	case query.Get("watch") == "true":
		s.watch(response, request, c)
	default:
		if listing != nil && query.Get("limit") != "1" {
			listing(request.URL.Path)
		}
		s.list(response, query, c, shownTo(request))
	}
}

// shownTo returns the conversion of objects for a request: whole objects or metadata.
func shownTo(request *http.Request) func(*unstructured.Unstructured) *unstructured.Unstructured {
	if !strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return func(object *unstructured.Unstructured) *unstructured.Unstructured { return object }
	}
	return func(object *unstructured.Unstructured) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object.Object["metadata"],
		}}
	}
}

func answer(response http.ResponseWriter, code int, body any) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(code)
	_ = json.NewEncoder(response).Encode(body)
}

// list uses the last name of a page as its continue token.
func (s *apiServer) list(
	response http.ResponseWriter, query url.Values, c *collection, show func(*unstructured.Unstructured) *unstructured.Unstructured,
) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList"}}
	list.SetResourceVersion(strconv.Itoa(s.version))
	size, _ := strconv.Atoi(query.Get("limit"))
	if size != 1 {
		c.lists++
	}
	for _, name := range sortedNames(c.objects) {
		if after := query.Get("continue"); after != "" && name <= after {
			continue
		}
		if len(list.Items) == size {
			list.SetContinue(keyOf(&list.Items[size-1]))
			break
		}
		list.Items = append(list.Items, *show(c.objects[name]))
	}
	answer(response, http.StatusOK, list)
}

func sortedNames(objects map[string]*unstructured.Unstructured) []string {
	names := make([]string, 0, len(objects))
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *apiServer) watch(response http.ResponseWriter, request *http.Request, c *collection) {
	from, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	s.mutex.Lock()
	c.watches++
	ended, tooOld := c.ended, from < s.oldest
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		c.watches--
		s.mutex.Unlock()
	}()
	response.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(response)
	show := shownTo(request)
	for !tooOld {
		events, over, changed := s.since(c, from, ended)
		for _, e := range events {
			_ = encoder.Encode(map[string]any{"type": e.name, "object": show(e.object)})
			from = e.version
		}
		if over {
			break
		}
		response.(http.Flusher).Flush()
		select {
		case <-request.Context().Done():
			return
		case <-changed:
		}
	}
	expired := status(http.StatusGone, metav1.StatusReasonExpired, "The provided resourceVersion is too old")
	_ = encoder.Encode(map[string]any{"type": "ERROR", "object": expired})
}

func (s *apiServer) since(c *collection, version, ended int) (events []event, over bool, changed <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	from, _ := slices.BinarySearchFunc(c.history, version+1, func(e event, version int) int { return e.version - version })
	return slices.Clone(c.history[from:]), c.ended != ended, s.changed
}
