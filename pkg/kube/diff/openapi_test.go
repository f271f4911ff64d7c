// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	kubediff "github.com/configbutler/slipstream/pkg/kube/diff"
)

// A document of widgets as kube-apiserver makes it of a CustomResourceDefinition; %s are more properties of the spec.
const widgets = `{"openapi": "3.0.0", "paths": {"/apis/example.com/v1/widgets": {"get": {}}}, "components": {"schemas": {
"com.example.v1.Widget": {"type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
  "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
    "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
    "spec": {"type": "object", "properties": {
      "size": {"type": "integer"},
      "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}},
      "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
      "steps": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
      "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}%s
    }}}},
"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}}}}
}}}`

// apiServer serves OpenAPI documents.
type apiServer struct {
	mutex sync.Mutex
	// documents are by path; down has requests fail.
	documents map[string]string
	down      bool
	// requests counts by path, with the query.
	requests map[string]int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests[r.URL.RequestURI()]++
	if s.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/openapi/v3" {
		_, _ = io.WriteString(w, s.documents[strings.TrimPrefix(r.URL.Path, "/openapi/v3/")]) // a disconnected client has failed already
		return
	}
	var entries []string
	for path, text := range s.documents {
		entries = append(entries, fmt.Sprintf(`"%s": {"serverRelativeURL": "/openapi/v3/%s?hash=%d"}`, path, path, len(text)))
	}
	_, _ = fmt.Fprintf(w, `{"paths": {%s}}`, strings.Join(entries, ", ")) // as above
}

func (s *apiServer) serve(path, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.documents, path)
	if text != "" {
		s.documents[path] = text
	}
}

func (s *apiServer) setDown(down bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.down = down
}

// counts are the requests since the last time: for the list, and for documents.
func (s *apiServer) counts() (lists, documents int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for path, n := range s.requests {
		if path == "/openapi/v3" {
			lists += n
		} else {
			documents += n
		}
	}
	s.requests = map[string]int{}
	return lists, documents
}

func serveOpenAPI(t testing.TB) (*apiServer, openapi.ClientWithContext) {
	t.Helper()
	s := &apiServer{documents: map[string]string{}, requests: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, openapi.NewClientWithContext(client)
}

func TestCompareByTheClustersSchema(t *testing.T) {
	server, client := serveOpenAPI(t)
	server.serve("apis/example.com/v1", fmt.Sprintf(widgets, ""))
	schemas := kubediff.NewSchemas(client, clocktesting.NewFakePassiveClock(time.Now()))
	for name, tt := range map[string]struct {
		change func(string) string
		want   []string
	}{
		"nothing": {replaced(), []string{}},
		"an item by its key": {
			replaced("[{name: a, count: 1}, {name: b, count: 2}]", "[{name: b, count: 2}, {name: a, count: 3}]"),
			[]string{"Changed /spec/parts[name=a]/count"},
		},
		"a set":               {replaced("[x, v]", "[v, z]"), []string{"Removed /spec/tags[=x]", "Added /spec/tags[=z]"}},
		"a list without keys": {replaced("[{name: a}, {name: b}]", "[{name: b}, {name: a}]"), []string{"Changed /spec/steps"}},
		"what has no schema": {
			replaced("[{name: a}]}", "[{name: b}], more: 1}"), []string{"Changed /spec/free/anything", "Added /spec/free/more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, compare(t, schemas, object(t, widget), object(t, tt.change(widget)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if lists, documents := server.counts(); lists != 1 || documents != 1 {
		t.Errorf("asked for the list %d times and for documents %d times, want once", lists, documents)
	}
}

func TestSchemasAreReadWhenTheyChange(t *testing.T) {
	server, client := serveOpenAPI(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	schemas := kubediff.NewSchemas(client, now)
	change := replaced("[{name: a}, {name: b}]", "[{name: b}, {name: a}]", "count: 1", "count: 3")
	byKey, whole := []string{"Changed /spec/parts[name=a]/count", "Changed /spec/steps"},
		[]string{"Changed /spec/parts", "Changed /spec/steps"}
	expect := func(what string, after time.Duration, text string, want []string, wantLists, wantDocuments int) {
		t.Helper()
		now.SetTime(now.Now().Add(after))
		if diff := cmp.Diff(want, compare(t, schemas, object(t, text), object(t, change(text)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
		if lists, documents := server.counts(); lists != wantLists || documents != wantDocuments {
			t.Errorf("%s: asked for the list %d times and for documents %d times, want %d and %d", what, lists, documents, wantLists, wantDocuments)
		}
	}
	expect("built in", 0, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: 'count: 1'}}", []string{"Changed /data/a"}, 0, 0)
	expect("not served", 0, widget, whole, 1, 0)
	server.serve("apis/example.com/v1", fmt.Sprintf(widgets, ""))
	expect("served since a moment", time.Second, widget, whole, 0, 0)
	expect("served since a while", 10*time.Second, widget, byKey, 1, 1)
	expect("the same for long", 6*time.Minute, widget, byKey, 1, 0)
	wider := widget + "  color: red\n"
	expect("a field that the schema does not have", time.Second, wider, whole, 0, 0)
	server.serve("apis/example.com/v1", fmt.Sprintf(widgets, `, "color": {"type": "string"}`))
	expect("a field that the schema has by now", 10*time.Second, wider, byKey, 1, 1)
	expect("from then on", 0, wider, byKey, 0, 0)
	server.setDown(true)
	expect("a list that cannot be read", 6*time.Minute, wider, byKey, 1, 0)
	expect("and is not asked for each time", time.Second, wider, byKey, 0, 0)
	server.setDown(false)
	server.serve("apis/example.com/v1", "")
	expect("not served any more", 6*time.Minute, wider, whole, 1, 0)
	// The client knows of Deployments, but not of the field; what the cluster serves has both.
	newer := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {size: 1, parts: [{name: a, count: 1}], " +
		"steps: [{name: a}, {name: b}]}}"
	server.serve("apis/apps/v1", strings.NewReplacer(`"example.com"`, `"apps"`, "Widget", "Deployment").Replace(fmt.Sprintf(widgets, "")))
	expect("a built-in type of a newer cluster", 6*time.Minute, newer, byKey, 1, 1)
}

func TestSchemasThatCannotBeRead(t *testing.T) {
	server, client := serveOpenAPI(t)
	schemas := kubediff.NewSchemas(client, clocktesting.NewFakePassiveClock(time.Now()))
	before, after := object(t, widget), object(t, strings.Replace(widget, "count: 1", "count: 3", 1))
	refused := func(what string, ctx context.Context) {
		t.Helper()
		_, err := schemas.Compare(ctx, before, after)
		if err == nil || !strings.HasPrefix(err.Error(), "read the schema of Widget of example.com/v1: ") ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %s", err, what)
		}
	}
	server.setDown(true)
	refused("list OpenAPI documents: ", t.Context())
	server.setDown(false)
	ended, end := context.WithCancel(t.Context())
	end()
	refused("context canceled", ended)
	server.serve("apis/example.com/v1", "no JSON")
	refused("read /openapi/v3/apis/example.com/v1?hash=7: ", t.Context())
	server.serve("apis/example.com/v1", fmt.Sprintf(widgets, ""))
	if got, err := schemas.Compare(t.Context(), before, after); err != nil || len(got) != 1 ||
		got[0].Path.String() != "/spec/parts[name=a]/count" {
		t.Errorf("a failure was kept: %v %v", got, err)
	}
}

func TestSchemasAreReadOnceByMany(t *testing.T) {
	server, client := serveOpenAPI(t)
	server.serve("apis/example.com/v1", fmt.Sprintf(widgets, ""))
	schemas := kubediff.NewSchemas(client, clocktesting.NewFakePassiveClock(time.Now()))
	before, after := object(t, widget), object(t, strings.Replace(widget, "count: 1", "count: 3", 1))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := schemas.Compare(t.Context(), before, after); err != nil || len(got) != 1 ||
				got[0].Path.String() != "/spec/parts[name=a]/count" {
				t.Errorf("got %v %v", got, err)
			}
		})
	}
	all.Wait()
	if lists, documents := server.counts(); lists != 1 || documents != 1 {
		t.Errorf("asked for the list %d times and for documents %d times, want once", lists, documents)
	}
}
