// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	cloudhttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// TestCloudEventsAreReadByTheSDK checks that the CloudEvents SDK parses the events.
func TestCloudEventsAreReadByTheSDK(t *testing.T) {
	for name, c := range map[string]struct {
		batch  item.Batch
		source format.Source
		kind   string
		time   time.Time
	}{
		"instances":   {batches["instances"], source, "ai.configbutler.instances.changed", noon},
		"definitions": {batches["definitions"], source, "ai.configbutler.crd.changed", noon},
		"no time": {
			item.Batch{ID: "1", Kind: item.Instance, Deletes: gone}, source, "ai.configbutler.instances.changed", time.Time{},
		},
		"parts of seconds": {
			item.Batch{ID: "1", At: noon.Add(time.Nanosecond), Kind: item.Instance, Deletes: gone}, source,
			"ai.configbutler.instances.changed", noon.Add(time.Nanosecond),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := format.ByName(v1alpha1.PipelineFormatCloudEvents)
			if err != nil {
				t.Fatal(err)
			}
			made, err := f.Calls(c.batch, c.source)
			if err != nil || len(made) != 1 {
				t.Fatalf("batch has %d calls, error %v; want one call", len(made), err)
			}
			request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(made[0].Body))
			request.Header = made[0].Header
			event, err := cloudhttp.NewEventFromHTTPRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := event.Validate(); err != nil {
				t.Errorf("event is invalid: %v", err)
			}
			got := [...]string{
				event.SpecVersion(), event.ID(), event.Type(), event.Source(), event.Subject(), event.DataContentType(), string(event.Data()),
			}
			want := [...]string{
				"1.0", c.batch.ID, c.kind, "/apis/configbutler.ai/v1alpha1/syncpipelines/search/sinks/index", "search",
				"application/json", string(made[0].Body),
			}
			if got != want {
				t.Errorf("event =\n%q, want\n%q", got, want)
			}
			if !event.Time().Equal(c.time) {
				t.Errorf("time of the event = %s, want %s", event.Time(), c.time)
			}
			for name := range request.Header {
				if name == "Ce-Datacontenttype" {
					t.Error("content type is also a header of an attribute")
				}
			}
		})
	}
}

// TestAttributesAreEscaped checks the example of the specification. The SDK does not unescape attributes.
func TestAttributesAreEscaped(t *testing.T) {
	sent := batch(item.Instance, nil, gone)
	sent.ID = "Euro € 😀"
	if got, want := calls(t, v1alpha1.PipelineFormatCloudEvents, sent)[0].Header.Get("ce-id"), "Euro%20%E2%82%AC%20%F0%9F%98%80"; got != want {
		t.Errorf("encoded id = %q, want %q", got, want)
	}
}
