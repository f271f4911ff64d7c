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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// receiver is somebody whom a pipeline tells.
type receiver struct {
	*receivertest.Receiver
	format v1alpha1.PipelineFormat
	// read is how many accepted calls have been looked at.
	read int
}

// receive starts a receiver that takes what the real one takes.
func receive(t *testing.T, format v1alpha1.PipelineFormat, options ...receivertest.Option) *receiver {
	t.Helper()
	r := &receiver{Receiver: receivertest.New(t, format, options...), format: format}
	t.Cleanup(func() { r.discreet(t) })
	return r
}

// sink is a sink of a pipeline that tells the receiver, with more lines of its http.
func (r *receiver) sink(name string, lines ...string) string {
	lines = append([]string{"url: " + r.URL, "format: " + string(r.format)}, lines...)
	return fmt.Sprintf("{name: %s, retry: {backoff: 100ms, maxBackoff: 1s}, http: {%s}}", name, strings.Join(lines, ", "))
}

// sinks is the line of a spec with sinks.
func sinks(of ...string) string { return "sinks: [" + strings.Join(of, ", ") + "]" }

// accepted are the calls that the receiver took.
func (r *receiver) accepted() (calls []receivertest.Call) {
	for _, call := range r.Calls() {
		if call.Status >= http.StatusOK && call.Status < http.StatusMultipleChoices {
			calls = append(calls, call)
		}
	}
	return calls
}

// next waits for so many more calls that the receiver takes, and returns them.
func (r *receiver) next(t *testing.T, count int) (calls []receivertest.Call) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%d more calls of %s", count, r.format), func(context.Context) error {
		if calls = r.accepted()[r.read:]; len(calls) < count {
			return fmt.Errorf("%d came, of %d calls in all", len(calls), len(r.Calls()))
		}
		return nil
	})
	r.read += count
	return calls[:count]
}

// rest are the calls that it took and that nobody has looked at.
func (r *receiver) rest() []receivertest.Call {
	calls := r.accepted()[r.read:]
	r.read += len(calls)
	return calls
}

// expect expects these to be all calls that it took since somebody last looked, each as a path and a body. Events have a type for
// a path.
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

// heading is the path of a call, or the type of an event whose other attributes are as they should be.
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
			t.Errorf("an event has the attributes %v", call.Header)
		}
	}
	return call.Header.Get("ce-type")
}

// normal has the bodies of calls in one form.
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

// change is what one call of ClusterWhisperer says: instances by their ids, or definitions by their names.
type change struct {
	Upserts []json.RawMessage
	Deletes []string
}

// told is an upsert of an instance.
type told struct {
	ID     string
	Labels map[string]string
}

// changes reads a call of ClusterWhisperer.
func changes(t *testing.T, call receivertest.Call) change {
	t.Helper()
	var out change
	if err := json.Unmarshal(call.Body, &out); err != nil {
		t.Fatalf("%s: %v", call.Body, err)
	}
	return out
}

// story is what calls of ClusterWhisperer say of instances, one after the other: +name of an upsert, with its label tier if it has
// one, and -name of a deletion. An instance is called by the last part of its id.
func story(t *testing.T, calls []receivertest.Call) (lines []string) {
	t.Helper()
	for _, call := range calls {
		said := changes(t, call)
		for _, id := range said.Deletes {
			lines = append(lines, "-"+id[strings.LastIndex(id, "/")+1:])
		}
		for _, raw := range said.Upserts {
			lines = append(lines, upsert(t, raw))
		}
	}
	return lines
}

func upsert(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var instance told
	if err := json.Unmarshal(raw, &instance); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	line := "+" + instance.ID[strings.LastIndex(instance.ID, "/")+1:]
	if tier := instance.Labels["tier"]; tier != "" {
		line += " " + tier
	}
	return line
}

// hears waits until what ClusterWhisperer is told is this story, from where somebody last looked, and no more.
func (r *receiver) hears(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	mirrortest.Eventually(t, fmt.Sprintf("%s is told %q", r.format, want), func(context.Context) error {
		if got = story(t, r.accepted()[r.read:]); len(got) < len(want) {
			return fmt.Errorf("it was told %q", got)
		}
		return nil
	})
	if !slices.Equal(got, want) {
		t.Errorf("it was told %q, want %q", got, want)
	}
	r.rest()
}
