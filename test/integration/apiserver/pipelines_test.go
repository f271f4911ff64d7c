// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// pipelineOf returns a suspended pipeline with the name of a namespace.
func pipelineOf(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %s}
spec:
  suspend: true
  instances: {resources: [deployments.apps]}
  sinks:
  - {name: assistant, http: {url: "https://assistant.%s.example.com", format: ClusterWhisperer}}
  - name: scan
    job:
      namespace: %s
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: scan, image: example.com/scan}]}}}}
`, namespace, namespace, namespace)
}

// sinkIn returns a suspended sink of a namespace.
func sinkIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: chat, namespace: %s}
spec:
  suspend: true
  events: [Failed]
  webhook: {url: "https://hooks.example.com/%s"}
`, namespace, namespace)
}

// testPipelines checks the defaults of a pipeline, its editor, and its requests.
func testPipelines(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "pipelines")
	s.apply(t, pipelineOf(namespace))
	t.Cleanup(func() { _, _ = s.admin.Run(context.WithoutCancel(t.Context()), "delete", "pipe", namespace) })
	for path, want := range map[string]string{
		"{.spec.mode} {.spec.debounce} {.spec.batch.maxItems} {.spec.resyncInterval}": "Watch 10s 50 1h0m0s",
		"{.spec.sinks[0].retry.backoff} {.spec.sinks[1].job.concurrencyPolicy}":       "1s Forbid",
		"{.spec.instances.exclude[0]}":                                                "events",
		"{.spec.sinks[1].job.template.spec.template.spec.containers[0].image}":        "example.com/scan",
	} {
		if got := s.jsonpath(t, path, "pipe", namespace); got != want {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
	if s.jsonpath(t, "{.status.editedBy.username}", "pipe", namespace) == "" {
		t.Error("pipeline has no editor")
	}
	contains(t, s.kubectl(t, "get", "pipe"), "assistant,scan", "Suspended")
	const path = "/apis/configbutler.ai/v1alpha1/syncpipelines/%s/sync%s"
	for _, each := range []struct{ name, body, want string }{
		{namespace, "", "spec.suspend is set, so nothing is sent"},
		{namespace, "{}", "spec.suspend is set, so nothing is sent"},
		{namespace, `{"spec":{"scope":"crds"}}`, `spec.scope: Unsupported value: "crds"`},
		{namespace, `{"spec":{"all":true}}`, `unknown field "spec.all"`},
		{"none", "", "NotFound"},
	} {
		out, err := s.admin.Feed(t.Context(), each.body, "create", "--raw", fmt.Sprintf(path, each.name, "?fieldValidation=Strict"), "-f", "-")
		if err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("sync of %s with the body %q: %v: %s, want %s", each.name, each.body, err, out, each.want)
		}
	}
	s.Patch(t, "", "pipe/"+namespace, `{"spec":{"suspend":false}}`)
	out, err := s.admin.Feed(t.Context(), "", "create", "--raw", fmt.Sprintf(path, namespace, "?dryRun=All"), "-f", "-")
	if want := "Would send CustomResourceDefinitions and objects that some sink does not know as they are (dry run)"; err != nil ||
		!strings.Contains(out, want) {
		t.Errorf("dry run: %v: %s, want %s", err, out, want)
	}
}
