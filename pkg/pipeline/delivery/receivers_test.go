// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// changed returns a batch of instances.
func changed() item.Batch {
	key := func(name string) item.Key {
		return item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: "shop", Name: name}
	}
	return item.Batch{
		ID: "batch-2", Sequence: 2, At: noon, Kind: item.Instance, Deletes: []item.Key{key("old")},
		Upserts: []item.Item{{Key: key("web"), CreatedAt: noon, UpdatedAt: noon, UID: "1"}},
	}
}

// TestReceivers delivers to receivers of all formats that fail in various ways.
func TestReceivers(t *testing.T) {
	for _, format := range []v1alpha1.PipelineFormat{
		v1alpha1.PipelineFormatClusterWhisperer, v1alpha1.PipelineFormatDotAI, v1alpha1.PipelineFormatCloudEvents,
	} {
		t.Run(string(format), func(t *testing.T) {
			receiver := receivertest.New(t, format, receivertest.TLS(), receivertest.Below("/search"))
			receiver.Require("s3cret")
			s := newFixture(t)
			s.spec.URL, s.spec.Format, s.spec.CABundle, s.spec.Collection = receiver.URL, format, receiver.CABundle(), "capabilities"
			s.secret(map[string]string{"token": "s3cret"})
			expect := func(sink delivery.Sink, outcome pipelineformat.Outcome, after time.Duration) {
				t.Helper()
				var got recorder
				if err := sink.Deliver(t.Context(), changed(), got.record); err != nil || len(got.results) != 1 {
					t.Fatalf("%+v, %v; want one result", got, err)
				}
				if result := got.results[0]; result.Outcome != outcome || result.RetryAfter != after {
					t.Errorf("got %+v, want %s after %s", result, outcome, after)
				}
			}
			receiver.Next(receivertest.Status(429, "Retry-After", "30"), receivertest.Status(500))
			sink := s.sink()
			expect(sink, pipelineformat.Retry, 30*time.Second)
			expect(sink, pipelineformat.Retry, 0)
			expect(sink, pipelineformat.Delivered, 0)

			// The receiver has processed it, but the result is lost.
			receiver.Next(receivertest.Lose())
			expect(s.sink(), pipelineformat.Retry, 0)

			s.secret(map[string]string{"token": "wrong"})
			expect(sink, pipelineformat.Rejected, 0)
			if len(receiver.Faults()) != 1 {
				t.Error("receiver did not reject the wrong token")
			}
			s.secret(map[string]string{"token": "s3cret"})
			expect(sink, pipelineformat.Delivered, 0)
			if got := receiver.Known(); !slices.Equal(got, []string{"shop/apps/v1/Deployment/web"}) {
				t.Errorf("objects of the receiver = %v", got)
			}
		})
	}
}
