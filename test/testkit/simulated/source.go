// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulated serves the ConfigMaps of a large cluster that exists only as a function, so that no etcd has to hold them.
package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source serves simulated ConfigMaps: lists and watches of those of all namespaces, and updates. Another handler serves all other requests. It
// evaluates no selectors, and has no streaming lists: clients list instead.
type Source struct {
	mux  *http.ServeMux
	next http.Handler
	// count is the number of ConfigMaps, and object returns the first state of each. They are in the order of namespaces and names.
	count  int
	object func(number int) *corev1.ConfigMap

	mu sync.Mutex
	// changes are all updates, oldest first. The resourceVersion of the one at index i is count+1+i; that of a first state is its number + 1.
	changes []*corev1.ConfigMap
	// changesOf has the indices of the changes of each ConfigMap that has any.
	changesOf map[int][]int
	// changed is closed by the next change.
	changed chan struct{}
}

var _ http.Handler = &Source{}

// NewSource returns a Source. object is called concurrently, for numbers from 0.
func NewSource(count int, object func(number int) *corev1.ConfigMap, next http.Handler) *Source {
	s := &Source{
		mux: http.NewServeMux(), next: next, count: count, object: object, changesOf: map[int][]int{}, changed: make(chan struct{}),
	}
	s.mux.HandleFunc("GET /api/v1/configmaps", s.read)
	s.mux.HandleFunc("PUT /api/v1/namespaces/{namespace}/configmaps/{name}", s.update)
	s.mux.Handle("/", next)
	return s
}

// Proxy returns a handler that sends requests to an API server, with the credentials of config.
func Proxy(config *rest.Config) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("failed to create a transport: %w", err)
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("failed to parse the URL of the API server: %w", err)
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: func(request *httputil.ProxyRequest) { request.SetURL(target) },
	}, nil
}

// ServeHTTP serves a request of an API server.
func (s *Source) ServeHTTP(w http.ResponseWriter, request *http.Request) { s.mux.ServeHTTP(w, request) }

func (s *Source) read(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	switch watched, _ := strconv.ParseBool(query.Get("watch")); {
	case query.Has("sendInitialEvents"): // As a server without the feature gate WatchList.
		refused := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		respond(w, int(refused.ErrStatus.Code), refused.ErrStatus)
	case watched:
		s.watch(w, request)
	default:
		s.list(w, request)
	}
}

// list returns a page. All pages of a list have the state of its first page.
func (s *Source) list(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	version, from := s.version(), 0
	if token := query.Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d", &version, &from); err != nil || from > s.count {
			http.Error(w, "invalid continue", http.StatusBadRequest)
			return
		}
	}
	through := s.count
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		through = min(from+limit, s.count)
	}
	page := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	page.ResourceVersion = strconv.Itoa(version)
	for number := from; number < through; number++ {
		object := *s.at(number, version)
		object.TypeMeta = metav1.TypeMeta{}
		page.Items = append(page.Items, object)
	}
	if through < s.count {
		page.Continue, page.RemainingItemCount = fmt.Sprintf("%d-%d", version, through), new(int64(s.count-through))
	}
	respond(w, http.StatusOK, page)
}

// watch sends the changes after a resourceVersion, until the timeout of the request.
func (s *Source) watch(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	version, err := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil {
		http.Error(w, "invalid resourceVersion", http.StatusBadRequest)
		return
	}
	ctx := request.Context()
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	encoder, flusher := json.NewEncoder(w), http.NewResponseController(w)
	for {
		changes, changed := s.since(version)
		version += len(changes)
		for _, object := range changes {
			event := metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Object: object}}
			if encoder.Encode(event) != nil {
				return // The client has disconnected.
			}
		}
		if flusher.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// update replaces a simulated ConfigMap.
func (s *Source) update(w http.ResponseWriter, request *http.Request) {
	number, found := s.find(request.PathValue("namespace"), request.PathValue("name"))
	if !found {
		s.next.ServeHTTP(w, request)
		return
	}
	object := &corev1.ConfigMap{}
	if err := json.NewDecoder(request.Body).Decode(object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	complete(object, number, s.count+1+len(s.changes))
	s.changesOf[number] = append(s.changesOf[number], len(s.changes))
	s.changes = append(s.changes, object)
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	respond(w, http.StatusOK, object)
}

// find returns the number of the ConfigMap with a name.
func (s *Source) find(namespace, name string) (number int, found bool) {
	return sort.Find(s.count, func(number int) int {
		object := s.object(number)
		return strings.Compare(namespace+"/"+name, object.Namespace+"/"+object.Name)
	})
}

// version returns the current resourceVersion.
func (s *Source) version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count + len(s.changes)
}

// since returns the changes after a resourceVersion, and a channel that the next change closes.
func (s *Source) since(version int) ([]*corev1.ConfigMap, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[min(max(version-s.count, 0), len(s.changes)):], s.changed
}

// at returns the state of a ConfigMap at a resourceVersion.
func (s *Source) at(number, version int) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changesOf[number]
	for i := len(changes) - 1; i >= 0; i-- {
		if s.count+1+changes[i] <= version {
			return s.changes[changes[i]]
		}
	}
	object := s.object(number)
	complete(object, number, number+1)
	return object
}

// complete sets what an API server sets.
func complete(object *corev1.ConfigMap, number, version int) {
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", number))
	object.ResourceVersion = strconv.Itoa(version)
	object.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
	object.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "shop", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &object.CreationTimestamp,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`),
	}}
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // The client has disconnected.
}
