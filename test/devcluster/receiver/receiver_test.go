// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/test/devcluster/receiver"
)

// Events of pipelines are printed line by line.
func TestPrintEvents(t *testing.T) {
	key := func(apiVersion, kind, namespace, name string) item.Key {
		return item.Key{Kind: item.Instance, APIVersion: apiVersion, ObjectKind: kind, Namespace: namespace, Name: name}
	}
	coupons := item.Key{Kind: item.CustomResourceDefinition, ObjectKind: "Coupon", Name: "coupons.shop.example.com"}
	var out strings.Builder
	server := httptest.NewServer(receiver.New(&out))
	defer server.Close()
	for _, batch := range []item.Batch{
		{ID: "1", Kind: item.CustomResourceDefinition, Upserts: []item.Item{{Key: coupons}}},
		{
			ID: "2", Kind: item.Instance, Deletes: []item.Key{key("v1", "Node", "", "a")},
			Upserts: []item.Item{{Key: key("shop.example.com/v1", "Coupon", "shop", "spring")}, {Key: key("apps/v1", "Deployment", "shop", "web")}},
		},
		{ID: "3", Kind: item.CustomResourceDefinition, Deletes: []item.Key{coupons}},
	} {
		deliver(t, server.URL, batch)
	}
	want := `crd.changed        +  coupons.shop.example.com
instances.changed  -  v1 Node a
instances.changed  +  shop.example.com/v1 Coupon shop/spring
instances.changed  +  apps/v1 Deployment shop/web
crd.changed        -  coupons.shop.example.com
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// deliver sends a batch as a pipeline does, and checks that it is accepted.
func deliver(t *testing.T, url string, batch item.Batch) {
	t.Helper()
	format, err := pipelineformat.ByName(v1alpha1.PipelineFormatCloudEvents)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := format.Calls(batch, pipelineformat.Source{Pipeline: "index", Sink: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		if status, body := post(t, url+call.Path, call.Header, string(call.Body)); status != http.StatusOK {
			t.Errorf("batch %s: %d %s", batch.ID, status, body)
		}
	}
}

func post(t *testing.T, url string, header http.Header, body string) (status int, content string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(read)
}

// Requests that are not events of pipelines are rejected, and not printed.
func TestInvalidRequests(t *testing.T) {
	var out strings.Builder
	server := httptest.NewServer(receiver.New(&out))
	defer server.Close()
	event := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Type": {"ai.configbutler.crd.changed"}}
	for name, sent := range map[string]struct {
		header http.Header
		body   string
	}{
		"NotAnEvent":  {http.Header{}, `{"upserts":[{"name":"a"}]}`},
		"OtherType":   {http.Header{"Ce-Specversion": {"1.0"}, "Ce-Type": {"com.example.changed"}}, `{"upserts":[{"name":"a"}]}`},
		"InvalidJSON": {event, `upserts`},
	} {
		if status, response := post(t, server.URL, sent.header, sent.body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", name, status, response)
		}
	}
	if out.String() != "" {
		t.Errorf("printed %q", out.String())
	}
}
