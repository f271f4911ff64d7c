// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// receiver is a receiver of a pipeline's calls.
type receiver struct {
	*receivertest.Receiver
	format v1alpha1.PipelineFormat
	// read is the number of accepted calls that the test has read.
	read int
}

// receive starts a receiver that validates calls like the real one.
func receive(t *testing.T, format v1alpha1.PipelineFormat, options ...receivertest.Option) *receiver {
	t.Helper()
	r := &receiver{Receiver: receivertest.New(t, format, options...), format: format}
	t.Cleanup(func() { r.expectNoContent(t) })
	return r
}

// sink returns a sink with the receiver's URL, and more fields of its http.
func (r *receiver) sink(name string, lines ...string) string {
	lines = append([]string{"url: " + r.URL, "format: " + string(r.format)}, lines...)
	return fmt.Sprintf("{name: %s, retry: {backoff: 100ms, maxBackoff: 1s}, http: {%s}}", name, strings.Join(lines, ", "))
}

// sinks returns the sinks field of a spec.
func sinks(of ...string) string { return "sinks: [" + strings.Join(of, ", ") + "]" }

// accepted returns the calls that the receiver accepted.
func (r *receiver) accepted() (calls []receivertest.Call) {
	for _, call := range r.Calls() {
		if call.Status >= http.StatusOK && call.Status < http.StatusMultipleChoices {
			calls = append(calls, call)
		}
	}
	return calls
}

// next waits for a number of further accepted calls, and returns them.
func (r *receiver) next(t *testing.T, count int) (calls []receivertest.Call) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%d more calls of %s", count, r.format), func(context.Context) error {
		if calls = r.accepted()[r.read:]; len(calls) < count {
			return fmt.Errorf("%d accepted of %d calls", len(calls), len(r.Calls()))
		}
		return nil
	})
	r.read += count
	return calls[:count]
}

// rest returns the accepted calls that were not read yet.
func (r *receiver) rest() []receivertest.Call {
	calls := r.accepted()[r.read:]
	r.read += len(calls)
	return calls
}

// expect expects the unread calls to be exactly these, each as a path and a body. For CloudEvents, the path is the event type.
func (r *receiver) expect(t *testing.T, want ...string) {
	t.Helper()
	got := []string{}
	for _, call := range r.rest() {
		got = append(got, r.heading(t, call)+" "+string(call.Body))
	}
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Errorf("%s: calls wanted -, got +:\n%s", r.format, diff)
	}
}

// heading returns the path of a call, or the type of a valid CloudEvent.
func (r *receiver) heading(t *testing.T, call receivertest.Call) string {
	t.Helper()
	if call.Method != http.MethodPost || call.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %s with content of type %q", r.format, call.Method, call.Header.Get("Content-Type"))
	}
	if r.format != v1alpha1.PipelineFormatCloudEvents {
		return call.Path
	}
	for _, attribute := range []string{"ce-id", "ce-source", "ce-subject", "ce-time"} {
		if call.Header.Get(attribute) == "" || call.Header.Get("ce-specversion") != "1.0" {
			t.Errorf("attributes of the event = %v", call.Header)
		}
	}
	return call.Header.Get("ce-type")
}

// normal returns calls with their bodies in a normalized form.
func normal(t *testing.T, calls []string) []string {
	t.Helper()
	out := make([]string, len(calls))
	for i, call := range calls {
		heading, body, _ := strings.Cut(call, " ")
		var content any
		decoder := json.NewDecoder(bytes.NewBufferString(body))
		decoder.UseNumber()
		if err := decoder.Decode(&content); err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		text, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out[i] = heading + "\n" + string(text)
	}
	return out
}

// change is the body of a ClusterWhisperer call: instances by id, or definitions by name.
type change struct {
	Upserts []json.RawMessage
	Deletes []string
}

// instance is an upsert of an instance.
type instance struct {
	ID     string
	Labels map[string]string
}

// changes decodes a call of ClusterWhisperer.
func changes(t *testing.T, call receivertest.Call) change {
	t.Helper()
	var out change
	if err := json.Unmarshal(call.Body, &out); err != nil {
		t.Fatalf("%s: %v", call.Body, err)
	}
	return out
}

// summarize returns the changes of instances in calls of ClusterWhisperer: +name for an upsert, followed by the value of the label
// tier if it is set, and -name for a deletion. The name is the last part of the id.
func summarize(t *testing.T, calls []receivertest.Call) (lines []string) {
	t.Helper()
	for _, call := range calls {
		body := changes(t, call)
		for _, id := range body.Deletes {
			lines = append(lines, "-"+id[strings.LastIndex(id, "/")+1:])
		}
		for _, raw := range body.Upserts {
			lines = append(lines, upsert(t, raw))
		}
	}
	return lines
}

func upsert(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var upserted instance
	if err := json.Unmarshal(raw, &upserted); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	line := "+" + upserted.ID[strings.LastIndex(upserted.ID, "/")+1:]
	if tier := upserted.Labels["tier"]; tier != "" {
		line += " " + tier
	}
	return line
}

// waitForChanges waits until the unread calls of ClusterWhisperer contain exactly these changes in order.
func (r *receiver) waitForChanges(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	mirrortest.Eventually(t, fmt.Sprintf("%s receives %q", r.format, want), func(context.Context) error {
		if got = summarize(t, r.accepted()[r.read:]); len(got) < len(want) {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	r.rest()
}
