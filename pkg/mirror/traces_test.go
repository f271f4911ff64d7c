// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// newTraced starts a mirror all of whose traces are sampled.
func newTraced(t *testing.T, prepare ...func(*fixture)) (*fixture, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	return newFixture(t, append(prepare, func(s *fixture) {
		s.tracing = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	})...), exporter
}

// spansOf returns the spans with a name.
func spansOf(exporter *tracetest.InMemoryExporter, name string) tracetest.SpanStubs {
	return slices.DeleteFunc(exporter.GetSpans(), func(span tracetest.SpanStub) bool { return span.Name != name })
}

func attributeOf(span tracetest.SpanStub, name string) string {
	for _, attribute := range span.Attributes {
		if string(attribute.Key) == name {
			return attribute.Value.String()
		}
	}
	return ""
}

// TestTracesOutliveTheProcess checks that the traces of changes which wait for the remote continue in the next process, and that the push
// is in one of them with links to the others.
func TestTracesOutliveTheProcess(t *testing.T) {
	s, exporter := newTraced(t, perChange)
	s.idle()
	s.git.guard(down)
	for i := range 3 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	testkit.Eventually(t, "rows", func() error {
		if n := s.record("main").PendingChanges; n != 3 {
			return fmt.Errorf("%d rows pending, want 3", n)
		}
		return nil
	})
	s.stop()
	changes := spansOf(exporter, "mirror.change")
	exporter.Reset()
	s.git.guard(nil)
	s.start()
	s.mirrored()
	s.idle()
	s.stop()

	commits, pushes := spansOf(exporter, "mirror.commit"), spansOf(exporter, "mirror.push")
	if len(changes) != 3 || len(commits) != 3 || len(spansOf(exporter, "mirror.outbox")) != 3 || len(pushes) != 1 {
		t.Fatalf("%d changes, %d commits, %d pushes", len(changes), len(commits), len(pushes))
	}
	push := pushes[0]
	linked := []trace.SpanID{push.Parent.SpanID()}
	for _, link := range push.Links {
		linked = append(linked, link.SpanContext.SpanID())
	}
	for _, change := range changes {
		below := func(span tracetest.SpanStub) bool {
			return span.Parent.SpanID() == change.SpanContext.SpanID() && span.SpanContext.TraceID() == change.SpanContext.TraceID()
		}
		at := slices.IndexFunc(commits, below)
		if at < 0 || !slices.Contains(linked, change.SpanContext.SpanID()) {
			t.Fatalf("no commit and push below %+v", change)
		}
		if commits[at].Links[0].SpanContext.SpanID() != push.SpanContext.SpanID() {
			t.Errorf("the commit has no link to the push: %+v", commits[at].Links)
		}
	}
}

// TestTracesHaveTheFinalCommit checks the commit in the trace of a change whose push follows another writer.
func TestTracesHaveTheFinalCommit(t *testing.T) {
	s, exporter := newTraced(t, recorded, perChange)
	s.cluster.put(configMap("a"), "before")
	s.mirrored()
	s.idle()
	s.overtakenTimes(2, "theirs/file")
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.stop()
	commits := spansOf(exporter, "mirror.commit")
	if got, want := attributeOf(commits[len(commits)-1], "vcs.ref.head.revision"), s.mustRun("rev-parse", "main"); got != want {
		t.Errorf("the trace has the commit %s, the branch %s", got, want)
	}
}

// TestTracesOfFailedPushes checks that they are errors, and quote nothing of the remote.
func TestTracesOfFailedPushes(t *testing.T) {
	s, exporter := newTraced(t)
	s.idle()
	s.git.hook(t, "shop.git", "pre-receive", "echo quoted-by-the-remote; exit 1")
	s.cluster.put(configMap("a"), "1")
	s.waitReady("main", v1alpha1.ReasonPushRejected)
	s.stop()
	pushes := spansOf(exporter, "mirror.push")
	if len(pushes) == 0 || pushes[0].Status.Code != codes.Error || pushes[0].Status.Description != "" || len(pushes[0].Events) > 0 {
		t.Errorf("pushes = %+v", pushes)
	}
}
