// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
	"github.com/configbutler/slipstream/test/testkit/tracetest"
)

const (
	tracedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: traced}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: main, image: shop/api:%s, env: [{name: KEY, value: value-of-the-change}]}]}
`
	// tracedObjects are what follows the Deployment: the URL of the receiver is missing.
	tracedObjects = `
apiVersion: v1
kind: Secret
metadata: {name: git, namespace: traced}
stringData: {username: any, password: password-of-git}
---
apiVersion: v1
kind: Secret
metadata: {name: receiver, namespace: traced}
stringData: {token: token-of-the-receiver}
---
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: main, namespace: traced-team}
spec: {sourceNamespace: traced, workloads: [{kind: Deployment, name: api}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: copy, namespace: traced-team}
spec: {catalogRef: {name: main}, targetNamespace: traced-copy, createNamespace: true}
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: events, namespace: traced-team}
spec: {event: {}, events: [Completed], digestWindow: 1s}
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: 1s}
---
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: traced}
spec:
  debounce: 0s
  batch: {maxWait: 0s}
  customResourceDefinitions: {enabled: false}
  instances: {resources: [deployments.apps]}
  sinks: [{name: receiver, http: {url: "%s", format: CloudEvents, secretRef: {namespace: traced, name: receiver}}}]
`
)

// tracedCluster is a cluster whose server exports traces.
type tracedCluster struct {
	*testCluster
	*mirrortest.Mirror
	collector *tracetest.Collector
	receiver  *receivertest.Receiver
	// config is the file with the configuration of the export.
	config string
}

// TestTracing follows changes through their traces.
func TestTracing(t *testing.T) {
	t.Parallel()
	collector := tracetest.New(t, "")
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	collector.Configure(t, config, 1_000_000)
	s := &tracedCluster{
		testCluster: &testCluster{mirrortest.NewAdminCluster(t, devcluster.Options{
			AuditLog: true, Admission: true, ServerArgs: []string{"--tracing-config-file=" + config},
		})},
		collector: collector, config: config, receiver: receivertest.New(t, v1alpha1.PipelineFormatCloudEvents),
	}
	s.Mirror = s.NewMirrorTo(t, "traced", mirrortest.Remote{
		URL:    s.Env(devcluster.EnvGitURL) + "/traced.git",
		Folder: filepath.Join(s.Env(devcluster.EnvGitRoot), "traced.git"), Secret: "git",
	})
	s.CreateNamespace(t, "traced-team")
	s.Apply(t, fmt.Sprintf(tracedObjects, s.receiver.URL))
	s.Watch(t, "all", "deployments.apps")
	s.change(t, "1")
	version := s.change(t, "2")

	s.testMirror(t, version)
	s.testDelivery(t)
	s.testRecord(t)
	s.testSync(t)
	s.testSecrecy(t)
	s.testLimit(t)
	s.testUnsampled(t)
	s.testWithoutCollector(t)
}

// change sets the image of the Deployment, waits until that is in Git, and returns the resourceVersion.
func (s *tracedCluster) change(t *testing.T, tag string) string {
	t.Helper()
	s.Apply(t, fmt.Sprintf(tracedDeployment, tag))
	s.Holds(t, "apps/v1/deployments/traced/api.yaml", "shop/api:"+tag)
	return strings.TrimSpace(s.commitTrailer(t))
}

// commitTrailer returns the resourceVersion of the last commit.
func (s *tracedCluster) commitTrailer(t *testing.T) string {
	t.Helper()
	out, err := s.Git(t.Context(), "log", "-1", "--format=%(trailers:key=X-ConfigButler-ResourceVersion,valueonly)", s.Branch)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// await waits for a span, and returns it.
func (s *tracedCluster) await(t *testing.T, what string, is func(tracetest.Span) bool) (span tracetest.Span) {
	t.Helper()
	mirrortest.Eventually(t, "a span: "+what, func(context.Context) error {
		spans := s.collector.Spans(is)
		if len(spans) == 0 {
			return errors.New("not received")
		}
		span = spans[0]
		return nil
	})
	return span
}

// testMirror follows a change from its event to its commit.
func (s *tracedCluster) testMirror(t *testing.T, version string) {
	t.Helper()
	change := s.await(t, "the change", func(span tracetest.Span) bool {
		return span.Name == "mirror.change" && span.Attributes["k8s.object.resource_version"] == version
	})
	if change.Service != "slipstream" || change.Parent != "" || change.Attributes["k8s.object.name"] != "api" {
		t.Errorf("span of the change: %+v", change)
	}
	spans := map[string]tracetest.Span{}
	for _, name := range []string{"mirror.author", "mirror.outbox", "mirror.push", "mirror.commit"} {
		spans[name] = s.await(t, name, func(span tracetest.Span) bool { return span.Name == name && span.Trace == change.Trace })
		if span := spans[name]; span.Parent != change.ID || span.End < span.Start {
			t.Errorf("%s is not below the change: %+v", name, span)
		}
	}
	out, err := s.Git(t.Context(), "log", "-1", "--format=%H", s.Branch)
	if err != nil {
		t.Fatal(err)
	}
	commit, push := spans["mirror.commit"], spans["mirror.push"]
	if got, want := commit.Attributes["vcs.ref.head.revision"], strings.TrimSpace(out); got != want {
		t.Errorf("the trace has the commit %s, the branch %s", got, want)
	}
	if len(commit.Links) != 1 || commit.Links[0] != push.ID || push.Attributes["vcs.ref.head.name"] != "main" || push.Failed {
		t.Errorf("commit %+v of push %+v", commit, push)
	}
	if signal := spans["mirror.author"].Attributes["slipstream.author.signal"]; signal == "" {
		t.Error("the trace does not have the source of the author")
	}
	log, err := os.ReadFile(s.Env(devcluster.EnvServerLog))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"Pushed"`) && strings.Contains(line, `traceID="`+change.Trace) && strings.Contains(line, commit.Attributes["vcs.ref.head.revision"]) {
			return
		}
	}
	t.Errorf("no line of the log has the trace %s and the commit", change.Trace)
}

// testDelivery checks that the receiver of the pipeline got the IDs of the delivery.
func (s *tracedCluster) testDelivery(t *testing.T) {
	t.Helper()
	delivery := s.await(t, "the delivery", func(span tracetest.Span) bool {
		return span.Name == "pipeline.deliver" && strings.Contains(span.Attributes["slipstream.objects"], "Deployment traced/api")
	})
	want := "00-" + delivery.Trace + "-" + delivery.ID + "-01"
	var got []string
	for _, call := range s.receiver.Calls() {
		got = append(got, call.Header.Get("Traceparent"))
		if call.Header.Get("Tracestate") != "" || call.Header.Get("Baggage") != "" {
			t.Errorf("headers of a call: %v", call.Header)
		}
	}
	if !strings.Contains(strings.Join(got, " "), want) {
		t.Errorf("the receiver got %q, want %s", got, want)
	}
}

// testRecord checks that the trace of the catalog names its record.
func (s *tracedCluster) testRecord(t *testing.T) {
	t.Helper()
	update := s.await(t, "the update of the catalog", func(span tracetest.Span) bool {
		return span.Name == "catalog.update" && span.Attributes["slipstream.syncstatus"] != "" &&
			span.Attributes["slipstream.objects"] == "[Deployment traced/api]"
	})
	s.Run(t, "get", "syncstatus", "-n", "traced-team", update.Attributes["slipstream.syncstatus"])
}

// testSync checks that the requests to the cluster are in the trace of a sync, and that its notification is traced.
func (s *tracedCluster) testSync(t *testing.T) {
	t.Helper()
	if _, err := clustertest.Plugin(t, s.Admin()).Run(t.Context(), "sync", "environment/copy", "-n", "traced-team"); err != nil {
		t.Fatal(err)
	}
	change := s.await(t, "the sync", func(span tracetest.Span) bool {
		return span.Name == "environment.change" && span.Attributes["k8s.object.name"] == "copy" && !span.Failed
	})
	s.Run(t, "get", "syncstatus", "-n", "traced-team", change.Attributes["slipstream.syncstatus"])
	sync := s.await(t, "environment.sync", func(span tracetest.Span) bool { return span.Name == "environment.sync" && span.Parent == change.ID })
	s.await(t, "a request of the sync", func(span tracetest.Span) bool {
		return span.Parent == sync.ID && strings.Contains(span.Attributes["url.full"], "/namespaces/traced-copy/deployments/api")
	})
	s.await(t, "the notification", func(span tracetest.Span) bool {
		return span.Name == "notification.deliver" && span.Attributes["slipstream.sink"] == "traced-team/events" &&
			span.Attributes["slipstream.outcome"] == "Delivered"
	})
}

// testSecrecy checks that nothing but metadata was exported. The path of a direct admission review has a secret.
func (s *tracedCluster) testSecrecy(t *testing.T) {
	t.Helper()
	segment, err := os.ReadFile(s.Env(devcluster.EnvAdmissionSegmentFile))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(segment))
	_, _ = s.ReadServer(t.Context(), "/process-validating-webhook/"+secret) // A review is no GET request.
	s.await(t, "a direct admission review", func(span tracetest.Span) bool {
		return strings.HasPrefix(span.Attributes["http.target"], "/process-validating-webhook/")
	})
	version := s.change(t, "of-the-end")
	s.await(t, "the last change", func(span tracetest.Span) bool { return span.Attributes["k8s.object.resource_version"] == version })
	received := s.collector.Received()
	for _, text := range []string{secret, "password-of-git", "token-of-the-receiver", "value-of-the-change", "shop/api:"} {
		if bytes.Contains(received, []byte(text)) {
			t.Errorf("a trace has %q", text)
		}
	}
}

// testLimit checks that a request does not determine the size of its span, and does not prevent the export of others: %FF is no UTF-8.
func (s *tracedCluster) testLimit(t *testing.T) {
	t.Helper()
	const path = "/unknown/%FF?"
	_, _ = s.ReadServer(t.Context(), path+strings.Repeat("x", 100_000)) // There is nothing at this path.
	span := s.await(t, "a long request", func(span tracetest.Span) bool { return strings.HasPrefix(span.Attributes["http.target"], path) })
	if got := len(span.Attributes["http.target"]); got != 512 || span.Attributes["url.path"] != "/unknown/?" {
		t.Errorf("exported %d bytes of the URL, with the path %q", got, span.Attributes["url.path"])
	}
}

// testUnsampled has the server sample no traces.
func (s *tracedCluster) testUnsampled(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.collector.Configure(t, s.config, 0)
	before, calls := len(s.collector.Received()), len(s.receiver.Calls())
	s.start(t)
	s.change(t, "3")
	mirrortest.Eventually(t, "the delivery", func(context.Context) error {
		if len(s.receiver.Calls()) == calls {
			return errors.New("not received")
		}
		return nil
	})
	for _, call := range s.receiver.Calls()[calls:] {
		if got := call.Header.Get("Traceparent"); got != "" {
			t.Errorf("the receiver got %q", got)
		}
	}
	s.stop(t) // This exports what has not been exported yet.
	if after := len(s.collector.Received()); after != before {
		t.Errorf("%d bytes were exported", after-before)
	}
}

// testWithoutCollector stops the collector, which delays nothing.
func (s *tracedCluster) testWithoutCollector(t *testing.T) {
	t.Helper()
	s.collector.Configure(t, s.config, 1_000_000)
	s.collector.Stop()
	s.start(t)
	s.change(t, "4")
	s.stop(t)
	s.start(t)
	s.change(t, "5")
}

func (s *tracedCluster) stop(t *testing.T) {
	t.Helper()
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func (s *tracedCluster) start(t *testing.T) {
	t.Helper()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
