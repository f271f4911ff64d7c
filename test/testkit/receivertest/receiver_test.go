// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	whisperer = v1alpha1.PipelineFormatClusterWhisperer
	dotAI     = v1alpha1.PipelineFormatDotAI
	events    = v1alpha1.PipelineFormatCloudEvents

	names = "/api/v1/capabilities/scan"
	scan  = `{"upserts":["widgets.example.com"],"deletes":[]}`
)

// post sends a body, and returns the status and the body of the response.
func post(ctx context.Context, client *http.Client, url, body string, header http.Header) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	maps.Copy(request.Header, header)
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or reading failed
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// send sends a batch, and expects each of its calls to be delivered.
func send(t *testing.T, r *receivertest.Receiver, name v1alpha1.PipelineFormat, batch item.Batch) {
	t.Helper()
	format, err := pipelineformat.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := format.Calls(batch, pipelineformat.Source{Pipeline: "search", Sink: "index", Collection: "capabilities"})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		status, answer, err := post(t.Context(), http.DefaultClient, r.URL+call.Path, string(call.Body), call.Header)
		if err != nil {
			t.Fatal(err)
		}
		if result := format.Interpret(call, status, nil, []byte(answer)); result.Outcome != pipelineformat.Delivered {
			t.Errorf("%s: response %d %s is %s: %s", name, status, answer, result.Outcome, result.Message)
		}
	}
}

func instance(namespace, name string) item.Item {
	return item.Item{
		Key:    item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: namespace, Name: name},
		Labels: map[string]string{"app": name}, CreatedAt: time.Unix(0, 0), UpdatedAt: time.Unix(60, 0), UID: "1",
	}
}

func definition(kind, name string) item.Item {
	return item.Item{Key: item.Key{Kind: item.CustomResourceDefinition, ObjectKind: kind, Name: name}}
}

func TestKnown(t *testing.T) {
	web, db := instance("shop", "web"), instance("", "db")
	widgets, gears := definition("Widget", "widgets.a.b"), definition("Gear", "gears.a.b")
	for format, named := range map[v1alpha1.PipelineFormat][2]string{
		whisperer: {"gears.a.b", "widgets.a.b"}, dotAI: {"Gear.a.b", "Widget.a.b"}, events: {"gears.a.b", "widgets.a.b"},
	} {
		r := receivertest.New(t, format)
		known := func(want ...string) {
			t.Helper()
			slices.Sort(want)
			if got := r.Known(); !slices.Equal(got, want) {
				t.Errorf("%s: known objects = %q, want %q", format, got, want)
			}
		}
		known()
		send(t, r, format, item.Batch{ID: "1", Kind: item.Instance, Upserts: []item.Item{web, db}})
		known("_cluster/apps/v1/Deployment/db", "shop/apps/v1/Deployment/web")
		if got, found := r.Object("shop/apps/v1/Deployment/web"); !found || got.Labels["app"] != "web" || !got.CreatedAt.Equal(web.CreatedAt) {
			t.Errorf("%s: web = %+v, %t", format, got, found)
		}
		send(t, r, format, item.Batch{ID: "2", Kind: item.CustomResourceDefinition, Upserts: []item.Item{widgets, gears}})
		known("_cluster/apps/v1/Deployment/db", named[0], named[1], "shop/apps/v1/Deployment/web")
		send(t, r, format, item.Batch{ID: "3", Kind: item.Instance, Deletes: []item.Key{web.Key, db.Key}})
		send(t, r, format, item.Batch{ID: "4", Kind: item.CustomResourceDefinition, Deletes: []item.Key{widgets.Key}})
		known(named[0])
		// A deleted object can be deleted again.
		send(t, r, format, item.Batch{ID: "4", Kind: item.CustomResourceDefinition, Deletes: []item.Key{widgets.Key}})
		if _, found := r.Object(named[1]); found {
			t.Errorf("%s: deleted definition is known", format)
		}
		for _, call := range r.Calls() {
			if call.Status/100 != 2 || call.Method != http.MethodPost || len(call.Body) == 0 || call.At.IsZero() {
				t.Errorf("%s: recorded call = %+v", format, call)
			}
		}
	}
}

func TestInvalidCalls(t *testing.T) {
	whole := `{"id":"a/v1/B/c","namespace":"a","name":"c","kind":"B","apiVersion":"v1","apiGroup":"","labels":{},"annotations":{},` +
		`"createdAt":"2026-01-02T03:04:05Z"}`
	sync := func(upserts string) string { return `{"upserts":[` + upserts + `],"deletes":[]}` }
	changed := func(old, replaced string) string { return sync(strings.Replace(whole, old, replaced, 1)) }
	many := `{"upserts":["` + strings.Join(numbered(201), `","`) + `"],"deletes":[]}`
	event := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"ai.configbutler.crd.changed"}}
	without := func(name string) http.Header {
		header := event.Clone()
		header.Del(name)
		return header
	}
	const instances, tool, resources = "/api/v1/instances/sync", "/api/v1/tools/manageOrgData", "/api/v1/resources/sync"
	for name, c := range map[string]struct {
		format     v1alpha1.PipelineFormat
		path, body string
		header     http.Header
		says       string
	}{
		"another path":     {whisperer, "/api/v1/instances", sync(whole), nil, "unknown path /api/v1/instances"},
		"a query":          {whisperer, instances + "?a=b", sync(whole), nil, "unknown path /api/v1/instances/sync?a=b"},
		"another type":     {whisperer, instances, sync(whole), http.Header{"Content-Type": {"text/plain"}}, "content type"},
		"no JSON":          {whisperer, instances, "{", nil, "not JSON"},
		"two values":       {whisperer, names, scan + scan, nil, "data follows"},
		"null":             {whisperer, names, `{"upserts":["a"],"deletes":null}`, nil, "body.deletes is <nil>"},
		"no list":          {whisperer, names, `{"upserts":["a"]}`, nil, "body.deletes is missing"},
		"an unknown field": {whisperer, names, `{"upserts":["a"],"deletes":[],"extra":1}`, nil, "body.extra is unknown"},
		"null labels":      {whisperer, instances, changed(`"labels":{}`, `"labels":null`), nil, "labels is <nil>"},
		"a number":         {whisperer, instances, changed(`"labels":{}`, `"labels":{"a":1}`), nil, "labels.a is 1"},
		"no namespace":     {whisperer, instances, changed(`"namespace":"a"`, `"namespace":""`), nil, "namespace is"},
		"another id":       {whisperer, instances, changed(`"id":"a/`, `"id":"b/`), nil, "the id of a/v1/B/c is b/v1/B/c"},
		"another group":    {whisperer, instances, changed(`"apiGroup":""`, `"apiGroup":"apps"`), nil, `group of a/v1/B/c is "apps"`},
		"a local time":     {whisperer, instances, changed("05Z", "05+01:00"), nil, "createdAt is"},
		"a configuration": {
			whisperer, instances, changed(`"annotations":{}`, `"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}`), nil,
			"must not leave the cluster",
		},
		"nothing":              {whisperer, names, `{"upserts":[],"deletes":[]}`, nil, "no objects"},
		"too many":             {whisperer, names, many, nil, "201 objects"},
		"twice":                {whisperer, instances, sync(whole + "," + whole), nil, "a/v1/B/c occurs twice"},
		"upserted and deleted": {whisperer, names, `{"upserts":["a"],"deletes":["a"]}`, nil, "a occurs twice"},
		"deleted twice":        {whisperer, names, `{"upserts":[],"deletes":["a","a"]}`, nil, "a occurs twice"},
		"a resync":             {dotAI, resources, `{"upserts":[],"deletes":[],"isResync":true}`, nil, "isResync is true"},
		"an id as deletion":    {dotAI, resources, `{"upserts":[],"deletes":["a"],"isResync":false}`, nil, "deletes[0] is a, must be an object"},
		"another tool":         {dotAI, "/api/v1/tools/other", `{}`, nil, "unknown path /api/v1/tools/other"},
		"another operation": {
			dotAI, tool, `{"dataType":"capabilities","operation":"deleteAll","collection":"a"}`, nil, "operation is deleteAll",
		},
		"no collection": {dotAI, tool, `{"dataType":"capabilities","operation":"delete","id":"1"}`, nil, "collection is missing"},
		"a plural": {
			dotAI, tool, `{"dataType":"capabilities","operation":"scan","collection":"a","resourceList":"Pod"}`, nil, "Kind.group",
		},
		"a name twice": {
			dotAI, tool, `{"dataType":"capabilities","operation":"scan","collection":"a","resourceList":"A.b,A.b"}`, nil, "A.b occurs twice",
		},
		"no event":            {events, "", `{}`, nil, "not an event"},
		"an event without id": {events, "", `{}`, without("Ce-Id"), "not a valid event"},
		"another event": {
			events, "", `{}`, http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/a"}, "Ce-Type": {"x"}}, `is "x"`,
		},
		"an event elsewhere": {events, "/api", `{}`, event, "unknown path /api"},
		"an event of another kind": {
			events, "", `{"upserts":["a"],"deletes":[]}`, event, "upserts[0] is a, must be an object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := receivertest.New(t, c.format)
			status, answer, err := post(t.Context(), http.DefaultClient, r.URL+c.path, c.body, c.header)
			if err != nil {
				t.Fatal(err)
			}
			if faults := r.Faults(); len(faults) == 0 || !strings.Contains(faults[0], c.says) || status != http.StatusBadRequest {
				t.Errorf("response = %d %s, faults = %q; want 400 and %q", status, answer, faults, c.says)
			}
			if known := r.Known(); len(known) > 0 {
				t.Errorf("known objects = %q, want none", known)
			}
		})
	}
}

func numbered(count int) (names []string) {
	for at := range count {
		names = append(names, fmt.Sprintf("n%d.example.com", at))
	}
	return names
}

func TestInvalidMethod(t *testing.T) {
	r := receivertest.New(t, whisperer)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.URL+names, strings.NewReader(scan))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the body is not read
	if faults := r.Faults(); response.StatusCode != http.StatusBadRequest || len(faults) != 2 {
		t.Errorf("response to PUT without a content type = %s, faults = %q", response.Status, faults)
	}
}

func TestRequiredCredentials(t *testing.T) {
	r := receivertest.New(t, whisperer)
	basic := func(name, password string) http.Header {
		request := http.Request{Header: http.Header{}}
		request.SetBasicAuth(name, password)
		return request.Header
	}
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for _, c := range []struct {
		require func()
		header  http.Header
		want    int
	}{
		{func() {}, nil, http.StatusAccepted},
		{func() { r.Require("s3cret") }, nil, http.StatusUnauthorized},
		{func() {}, bearer("other"), http.StatusUnauthorized},
		{func() {}, bearer("s3cret"), http.StatusAccepted},
		{func() { r.Require("rotated") }, bearer("s3cret"), http.StatusUnauthorized},
		{func() { r.RequireBasic("me", "s3cret") }, bearer("s3cret"), http.StatusUnauthorized},
		{func() {}, basic("me", "other"), http.StatusUnauthorized},
		{func() {}, basic("me", "s3cret"), http.StatusAccepted},
	} {
		c.require()
		status, _, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, c.header)
		if err != nil {
			t.Fatal(err)
		}
		if faults := r.Faults(); status != c.want || (len(faults) > 0) != (status == http.StatusUnauthorized) {
			t.Errorf("response to a call with %q = %d, faults = %q, want %d", c.header, status, faults, c.want)
		}
		if len(r.Faults()) > 0 {
			t.Error("Faults returned the same faults twice")
		}
	}
}

func TestTLSBelowAPath(t *testing.T) {
	r := receivertest.New(t, whisperer, receivertest.TLS(), receivertest.Below("/tenants/a"))
	if !strings.HasPrefix(r.URL, "https://127.0.0.1:") || !strings.HasSuffix(r.URL, "/tenants/a") {
		t.Fatalf("URL = %s", r.URL)
	}
	_, _, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("certificate is trusted without the bundle: %v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(r.CABundle()) {
		t.Fatalf("bundle = %s", r.CABundle())
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if status, answer, err := post(t.Context(), client, r.URL+names, scan, nil); err != nil || status != http.StatusAccepted {
		t.Errorf("response = %d %s, %v", status, answer, err)
	}
	if status, _, err := post(t.Context(), client, strings.TrimSuffix(r.URL, "/tenants/a")+names, scan, nil); err != nil || status != 400 {
		t.Errorf("response to a call outside of the path = %d, %v", status, err)
	}
	if faults := r.Faults(); len(faults) != 1 {
		t.Errorf("faults = %q, want one", faults)
	}
	if plain := receivertest.New(t, whisperer); plain.CABundle() != nil {
		t.Error("receiver without TLS has a CA bundle")
	}
}

// spy is a test that records its failures.
type spy struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (*spy) Helper() {}

func (s *spy) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *spy) Errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func TestUnreadFaultsFailTheTest(t *testing.T) {
	for body, want := range map[string]int{scan: 0, "{}": 2} {
		test := &spy{TB: t}
		r := receivertest.New(test, whisperer)
		if _, _, err := post(t.Context(), http.DefaultClient, r.URL+names, body, nil); err != nil {
			t.Fatal(err)
		}
		for _, cleanup := range test.cleanups {
			cleanup()
		}
		if len(test.failures) != want {
			t.Errorf("body %s: failures of the test = %q, want %d", body, test.failures, want)
		}
	}
}

func TestAwait(t *testing.T) {
	r := receivertest.New(t, whisperer)
	opened := make(chan struct{})
	r.Next(receivertest.Gate(opened))
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
		done <- err
	}()
	if err := r.Await(t.Context(), func() bool { return len(r.Calls()) == 1 }); err != nil {
		t.Fatal(err)
	}
	if known, status := r.Known(), r.Calls()[0].Status; len(known) > 0 || status != 0 {
		t.Errorf("before the gate opens: status = %d, known objects = %q", status, known)
	}
	close(opened)
	if err := r.Await(t.Context(), func() bool { return r.Calls()[0].Status == http.StatusAccepted }); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Await(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("Await returned %v", err)
	}
}
