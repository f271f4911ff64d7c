// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// apiServer speaks the list and watch protocol of Kubernetes for widgets in the namespace shop: versions, paging,
// bookmarks, compaction, and every sort of refusal that a test asks for.
type apiServer struct {
	mutex    sync.Mutex
	objects  map[string]*unstructured.Unstructured
	history  []metav1.WatchEvent
	version  int
	oldest   int
	changed  chan struct{}
	refusal  *metav1.Status
	error    *metav1.Status
	requests []string
	accepted []string
	watches  int
}

// eachReader runs a test with a server of its own for each way to read.
func eachReader(t *testing.T, test func(*testing.T, *apiServer, watch.Reader)) {
	t.Run("objects", func(t *testing.T) {
		server, config := newAPIServer(t)
		test(t, server, objects(t, config))
	})
	t.Run("metadata", func(t *testing.T) {
		server, config := newAPIServer(t)
		test(t, server, metadataOnly(t, config))
	})
}

func objects(t *testing.T, config *rest.Config) watch.Reader {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return watch.Objects(client)
}

func metadataOnly(t *testing.T, config *rest.Config) watch.Reader {
	t.Helper()
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return watch.Metadata(client)
}

func newAPIServer(t *testing.T) (*apiServer, *rest.Config) {
	t.Helper()
	s := &apiServer{objects: map[string]*unstructured.Unstructured{}, version: 100, changed: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return s, &rest.Config{Host: server.URL, QPS: -1}
}

// happen makes one change and returns its resourceVersion.
func (s *apiServer) happen(event, name string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	object := widget(name, s.version)
	if s.objects[name] = object; event == "DELETED" {
		delete(s.objects, name)
	}
	encoded, _ := json.Marshal(object)
	s.append(metav1.WatchEvent{Type: event}, encoded)
	return strconv.Itoa(s.version)
}

// bookmark sends the watches a new version without a change of their objects.
func (s *apiServer) bookmark() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version++
	encoded, _ := json.Marshal(widget("", s.version))
	s.append(metav1.WatchEvent{Type: "BOOKMARK"}, encoded)
	return strconv.Itoa(s.version)
}

func (s *apiServer) append(event metav1.WatchEvent, object []byte) {
	event.Object.Raw = object
	s.history = append(s.history, event)
	s.wake()
}

// wake lets the watches look again. The caller holds the mutex.
func (s *apiServer) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// compact drops the history: open watches end with a status, and a watch from an older version is refused.
func (s *apiServer) compact(end *metav1.Status) {
	s.mutex.Lock()
	s.version++
	s.oldest = s.version
	s.mutex.Unlock()
	s.endWatches(end)
}

// endWatches ends the open watches with a status.
func (s *apiServer) endWatches(status *metav1.Status) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.error = status
	s.wake()
}

// restore puts the version back, as a restore of etcd does.
func (s *apiServer) restore(version int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version, s.history = version, nil
}

// refuse answers every request with the status, until it is called with nil.
func (s *apiServer) refuse(status *metav1.Status) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.refusal = status
}

func (s *apiServer) openWatches() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.watches
}

func (s *apiServer) seen() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

// accept returns the Accept headers of the requests.
func (s *apiServer) accept() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.accepted)
}

func widget(name string, version int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Widget")
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetResourceVersion(strconv.Itoa(version))
	object.SetLabels(map[string]string{"tier": "front"})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:pin":{}}}`),
	}})
	object.Object["data"] = map[string]any{"pin": "4711"}
	return object
}

// asMetadata is what the API server makes of an object for those who ask for nothing but its metadata.
func asMetadata(object *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object.Object["metadata"],
	}}
}

func status(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

func expired(token string) *metav1.Status {
	s := status(http.StatusGone, metav1.StatusReasonExpired, "The provided resourceVersion is too old")
	s.Continue = token
	return s
}

func (s *apiServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, request.URL.RequestURI())
	s.accepted = append(s.accepted, request.Header.Get("Accept"))
	refusal := s.refusal
	s.mutex.Unlock()
	query := request.URL.Query()
	switch {
	case refusal != nil:
		answer(response, int(refusal.Code), refusal)
	case !strings.HasSuffix(request.URL.Path, "/widgets"):
		answer(response, http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, "no such path"))
	case query.Get("watch") == "true":
		s.watch(response, request)
	default:
		s.list(response, query, wantsMetadata(request))
	}
}

func wantsMetadata(request *http.Request) bool {
	return strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func answer(response http.ResponseWriter, code int, body any) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(code)
	_ = json.NewEncoder(response).Encode(body)
}

// list continues with tokens VERSION:NAME, and the version 0 stands for the present one.
func (s *apiServer) list(response http.ResponseWriter, query url.Values, metadataOnly bool) {
	limit, token := query.Get("limit"), query.Get("continue")
	s.mutex.Lock()
	defer s.mutex.Unlock()
	version, after, _ := strings.Cut(token, ":")
	if at, _ := strconv.Atoi(version); at != 0 && at < s.oldest {
		answer(response, http.StatusGone, expired("0:"+after))
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("WidgetList")
	list.SetResourceVersion(strconv.Itoa(s.version))
	size, _ := strconv.Atoi(limit)
	for _, name := range sortedNames(s.objects) {
		if token != "" && name <= after {
			continue
		}
		if size > 0 && len(list.Items) == size {
			last := list.Items[size-1].GetName()
			list.SetContinue(strconv.Itoa(s.version) + ":" + last)
			break
		}
		object := s.objects[name]
		if metadataOnly {
			object = asMetadata(object)
		}
		list.Items = append(list.Items, *object)
	}
	if metadataOnly {
		list.SetAPIVersion("meta.k8s.io/v1")
		list.SetKind("PartialObjectMetadataList")
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

func (s *apiServer) watch(response http.ResponseWriter, request *http.Request) {
	from, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	s.mutex.Lock()
	s.watches++
	tooOld := from < s.oldest
	s.error = nil
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		s.watches--
		s.mutex.Unlock()
	}()
	response.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(response)
	if tooOld {
		sendError(encoder, expired(""))
		return
	}
	for {
		events, failure, changed := s.since(from)
		for _, event := range events {
			_ = encoder.Encode(shown(event, wantsMetadata(request)))
			from = versionOf(event)
		}
		if failure != nil {
			sendError(encoder, failure)
			return
		}
		response.(http.Flusher).Flush()
		select {
		case <-request.Context().Done():
			return
		case <-changed:
		}
	}
}

func (s *apiServer) since(version int) ([]metav1.WatchEvent, *metav1.Status, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var events []metav1.WatchEvent
	for _, event := range s.history {
		if versionOf(event) > version {
			events = append(events, event)
		}
	}
	return events, s.error, s.changed
}

// shown is an event as it is sent.
func shown(event metav1.WatchEvent, metadataOnly bool) metav1.WatchEvent {
	if metadataOnly {
		event.Object.Raw, _ = json.Marshal(asMetadata(objectOf(event)))
	}
	return event
}

func objectOf(event metav1.WatchEvent) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	_ = object.UnmarshalJSON(event.Object.Raw)
	return object
}

func versionOf(event metav1.WatchEvent) int {
	version, _ := strconv.Atoi(objectOf(event).GetResourceVersion())
	return version
}

func sendError(encoder *json.Encoder, failure *metav1.Status) {
	encoded, _ := json.Marshal(failure)
	event := metav1.WatchEvent{Type: "ERROR"}
	event.Object.Raw = encoded
	_ = encoder.Encode(event)
}
