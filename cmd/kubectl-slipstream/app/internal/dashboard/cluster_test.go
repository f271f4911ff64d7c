// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const api = "/apis/configbutler.ai/v1alpha1/"

// cluster responds as an API server with tables and objects of configbutler.ai.
type cluster struct {
	*httptest.Server

	mu sync.Mutex
	// tables are those of lists, by path below the version. Others are empty.
	tables map[string]*metav1.Table
	// objects are the responses to GET and PATCH by path below the version: an object or an error.
	objects map[string]any
	// refused are the paths that the user may not list.
	refused []string
	// denied are the permissions that the user lacks, such as create environments/sync.
	denied []string
	// isDown is set while nothing is served.
	isDown bool
	// watches are sent what follows a list.
	watches map[string][]chan metav1.WatchEvent
	// reviewed are the permissions that were reviewed, and writes the requests that write.
	reviewed, writes []string
	// watched is notified of each watch.
	watched chan string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		tables: map[string]*metav1.Table{}, objects: map[string]any{}, watches: map[string][]chan metav1.WatchEvent{},
		watched: make(chan string, 100),
	}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.TrimPrefix(r.URL.Path, api)
	c.mu.Lock()
	isDown, isRefused, table, object := c.isDown, slices.Contains(c.refused, path), c.tables[path], c.objects[path]
	c.mu.Unlock()
	switch {
	case isDown:
		fail(w, apierrors.NewInternalError(io.ErrUnexpectedEOF))
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		c.review(w, r)
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		reply(w, map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "jane"}},
		})
	case r.Method != http.MethodGet:
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.writes = append(c.writes, r.Method+" "+path+" "+r.URL.Query().Get("dryRun")+" "+string(body))
		c.mu.Unlock()
		c.respond(w, path, object)
	case isRefused:
		denial := apierrors.NewForbidden(v1alpha1.Resource(path), "", io.EOF)
		denial.ErrStatus.Message = `User "jane" cannot list resource "` + path + `" in API group "configbutler.ai" at the cluster scope`
		fail(w, denial)
	case r.URL.Query().Get("watch") != "":
		c.watch(w, r, path)
	case strings.Contains(r.Header.Get("Accept"), "as=Table"):
		if table == nil {
			table = tableOf()
		}
		reply(w, table)
	default:
		c.respond(w, path, object)
	}
}

func (c *cluster) respond(w http.ResponseWriter, path string, object any) {
	switch object := object.(type) {
	case nil:
		fail(w, apierrors.NewNotFound(v1alpha1.Resource("things"), path))
	case *apierrors.StatusError:
		fail(w, object)
	default:
		reply(w, object)
	}
}

// watch sends events until the client or the cluster ends it.
func (c *cluster) watch(w http.ResponseWriter, r *http.Request, path string) {
	events := make(chan metav1.WatchEvent)
	c.mu.Lock()
	c.watches[path] = append(c.watches[path], events)
	c.mu.Unlock()
	w.(http.Flusher).Flush()
	select {
	case c.watched <- path:
	default:
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case event, open := <-events:
			if !open {
				return
			}
			reply(w, event)
			w.(http.Flusher).Flush()
		}
	}
}

// review responds to a review of a permission.
func (c *cluster) review(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review := object.(*authorizationv1.SelfSubjectAccessReview)
	of := review.Spec.ResourceAttributes
	text := of.Verb + " " + of.Resource
	if of.Subresource != "" {
		text += "/" + of.Subresource
	}
	c.mu.Lock()
	c.reviewed = append(c.reviewed, strings.TrimSpace(text+" "+of.Namespace+"/"+of.Name))
	review.Status.Allowed = !slices.Contains(c.denied, text)
	c.mu.Unlock()
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
	reply(w, review)
}

// send sends an event to the latest watch of a path.
func (c *cluster) send(t *testing.T, path, kind string, table *metav1.Table) {
	t.Helper()
	raw, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case c.latest(path) <- metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}:
	case <-t.Context().Done():
		t.Fatalf("no watch of %s takes an event", path)
	}
}

func (c *cluster) latest(path string) chan metav1.WatchEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.watches[path]
	return all[len(all)-1]
}

// stop ends the watches of a path, and serves nothing until start.
func (c *cluster) stop(path string) {
	events := c.latest(path)
	c.change(func() { c.isDown = true })
	close(events)
}

func (c *cluster) start() { c.change(func() { c.isDown = false }) }

// change changes what the cluster serves.
func (c *cluster) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// written returns the requests that write.
func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// tableOf returns a table of rows with a name and a state each, in the namespace teams.
func tableOf(rows ...[2]string) *metav1.Table {
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}, {Name: "State", Type: "string"}},
	}
	for _, row := range rows {
		raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{
			"namespace": "teams", "name": row[0], "resourceVersion": "7", "creationTimestamp": "2026-05-04T12:00:00Z", "labels": map[string]string{"team": "a"},
		}})
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{row[0], row[1]}, Object: runtime.RawExtension{Raw: raw}})
	}
	return table
}

func reply(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.WriteHeader(int(status.Code))
	reply(w, status)
}

// environment returns the environment alice.
func environment(spec, status map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": "Environment", "spec": spec, "status": status,
		"metadata": map[string]any{
			"namespace": "teams", "name": "alice", "resourceVersion": "7", "managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
	}
}
