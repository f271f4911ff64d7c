// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// requestServer responds as an API server with some objects of configbutler.ai does.
type requestServer struct {
	*server
	// lives are the states of objects by path: a list shows the first one, and a watch the others.
	lives map[string][]any
	// answers are the responses to POST and PATCH by path: an object or a metav1.Status.
	answers map[string]any

	mu sync.Mutex
	// writes are the requests that write, with their queries and bodies.
	writes []string
}

func serveRequests(t *testing.T, lives map[string][]any, answers map[string]any) *requestServer {
	t.Helper()
	s := &requestServer{lives: lives, answers: answers}
	s.server = &server{Server: httptest.NewServer(s)}
	t.Cleanup(s.server.Close)
	return s
}

func (s *requestServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPost || r.Method == http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.writes = append(s.writes, fmt.Sprintf("%s %s?%s %s", r.Method, strings.TrimPrefix(r.URL.Path, ofTeams), query.Get("dryRun"), body))
		s.mu.Unlock()
		s.respond(w, r.URL.Path, s.answers[r.URL.Path])
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		for _, life := range s.lives[s.only(r)][1:] {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": life})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case len(s.lives[r.URL.Path]) > 0:
		s.respond(w, r.URL.Path, s.lives[r.URL.Path][0])
	case s.answers[r.URL.Path] != nil:
		s.respond(w, r.URL.Path, s.answers[r.URL.Path])
	case s.isCollection(r.URL.Path):
		s.list(w, r)
	default:
		s.respond(w, r.URL.Path, nil)
	}
}

// only returns the path of the object that a list or a watch is limited to.
func (*requestServer) only(r *http.Request) string {
	return r.URL.Path + "/" + strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

// isCollection reports whether a path is that of all objects of a type in one namespace, which has some.
func (s *requestServer) isCollection(path string) bool {
	for object := range s.lives {
		if strings.HasPrefix(object, path+"/") {
			return true
		}
	}
	return false
}

// list responds with the objects of a path that the selectors match.
func (s *requestServer) list(w http.ResponseWriter, r *http.Request) {
	items, kind := []any{}, ""
	for _, path := range slices.Sorted(maps.Keys(s.lives)) {
		matches := strings.HasPrefix(path, r.URL.Path+"/")
		if matches {
			kind = s.lives[path][0].(runtime.Object).GetObjectKind().GroupVersionKind().Kind
		}
		if r.URL.Query().Has("fieldSelector") {
			matches = path == s.only(r)
		}
		if selector, err := labels.Parse(r.URL.Query().Get("labelSelector")); err != nil ||
			!selector.Matches(labels.Set(s.lives[path][0].(metav1.Object).GetLabels())) {
			matches = false
		}
		if matches {
			items = append(items, s.lives[path][0])
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items,
	})
}

// respond writes an object or an error. nil is an object that does not exist.
func (*requestServer) respond(w http.ResponseWriter, path string, answer any) {
	if answer == nil {
		if _, inNamespace, ok := strings.Cut(path, "/namespaces/"); ok {
			_, path, _ = strings.Cut(inNamespace, "/")
		}
		parts := strings.Split(path, "/")
		answer = apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: parts[0]}, parts[min(1, len(parts)-1)]).Status()
	}
	if status, failed := answer.(metav1.Status); failed {
		w.WriteHeader(int(status.Code))
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// in runs the plugin in the namespace teams.
func (s *requestServer) in(t *testing.T, args ...string) (out, progress string, code int, err error) {
	t.Helper()
	return s.call(t.Context(), append(args, "-n", "teams")...)
}

func objectMeta(name string, marks map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "teams", ResourceVersion: "1", Generation: 1, Labels: marks}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: kind}
}

// recordLives returns the states of a record of the environment alice.
func recordLives(statuses ...v1alpha1.SyncRecord) []any {
	var lives []any
	for _, status := range statuses {
		lives = append(lives, &v1alpha1.SyncStatus{
			TypeMeta: typeMeta("SyncStatus"), ObjectMeta: objectMeta("alice-b4d9q", map[string]string{v1alpha1.LabelEnvironment: "alice"}),
			Spec: v1alpha1.SyncStatusSpec{
				Type: v1alpha1.SyncTypeEnvironment, Batch: "r1",
				Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice"},
			},
			Status: status,
		})
	}
	return lives
}

// envtLives returns the states of the environment alice.
func envtLives(statuses ...v1alpha1.EnvironmentStatus) []any {
	var lives []any
	for _, status := range statuses {
		lives = append(lives, &v1alpha1.Environment{
			TypeMeta: typeMeta("Environment"), ObjectMeta: objectMeta("alice", map[string]string{"team": "a"}),
			Status: status,
		})
	}
	return lives
}

// syncAnswer is the response to a sync request.
func syncAnswer(outcome v1alpha1.RequestOutcome) *v1alpha1.SyncRequest {
	outcome.Accepted = true
	return &v1alpha1.SyncRequest{
		TypeMeta: typeMeta("SyncRequest"), ObjectMeta: objectMeta("alice", nil), Status: v1alpha1.SyncRequestStatus{RequestOutcome: outcome},
	}
}
