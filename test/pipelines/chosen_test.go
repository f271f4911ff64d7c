// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// leftOut are parts of the ids of objects that a pipeline for everything omits unless they are selected.
var leftOut = []string{
	"/v1/Event/", "/events.k8s.io/v1/Event/", "/coordination.k8s.io/v1/Lease/", "/v1/Endpoints/", "/discovery.k8s.io/v1/EndpointSlice/",
	"/apiextensions.k8s.io/v1/CustomResourceDefinition/",
}

// testSelection tests a pipeline for everything, and then with narrower selections.
func (s *testCluster) testSelection(t *testing.T) {
	c := s.newFixture(t, "chosen")
	r := receive(t, whisperer)
	c.define(t, "widgets", "gadgets", "gizmos")
	c.create(t, "first")
	globs := "customResourceDefinitions: {include: ['*.chosen.example.com'], exclude: ['giz*', gadgets.chosen.example.com]}"
	c.readyPipeline(t, prompt, globs, "instances: {}", sinks(r.sink("index")))
	c.waitForKnown(t, r, "_cluster/v1/Namespace/chosen", "chosen/chosen.example.com/v1/Widget/first", "chosen/v1/ServiceAccount/default",
		"widgets.chosen.example.com")
	for _, id := range r.Known() {
		if slices.ContainsFunc(leftOut, func(part string) bool { return strings.Contains(id, part) }) {
			t.Errorf("%s was sent", id)
		}
	}
	c.waitFor(t, "has counts of types and objects", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.WatchedTypes < 20 || p.Status.Objects < 50 {
			return fmt.Errorf("%d types with %d objects", p.Status.WatchedTypes, p.Status.Objects)
		}
		return nil
	})

	c.readyPipeline(t, prompt, globs, fmt.Sprintf("instances: {resources: [namespaces, widgets.%s]}", c.group), sinks(r.sink("index")))
	c.waitForKnown(t, r, "_cluster/v1/Namespace/chosen", "chosen/chosen.example.com/v1/Widget/first", "widgets.chosen.example.com")
	c.waitForUnknown(t, r, "/v1/ServiceAccount/")
	c.readyPipeline(t, prompt, "customResourceDefinitions: {include: [gadgets.chosen.example.com]}", c.selects(widgets),
		sinks(r.sink("index")))
	mirrortest.Eventually(t, "the receiver has the remaining objects", func(context.Context) error {
		if got := fmt.Sprint(r.Known()); got != "[chosen/chosen.example.com/v1/Widget/first gadgets.chosen.example.com]" {
			return fmt.Errorf("receiver has %s", got)
		}
		return nil
	})
	c.testInvalidSpecs(t, r)
}

// waitForKnown waits until the receiver has objects with these ids.
func (c *fixture) waitForKnown(t *testing.T, r *receiver, want ...string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%s has %q", r.format, want), func(context.Context) error {
		known := r.Known()
		for _, id := range want {
			if !slices.Contains(known, id) {
				return fmt.Errorf("%s is missing among %d", id, len(known))
			}
		}
		return nil
	})
}

// waitForUnknown waits until the receiver has no object with a text in its id.
func (c *fixture) waitForUnknown(t *testing.T, r *receiver, text string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%s has no %s", r.format, text), func(context.Context) error {
		for _, id := range r.Known() {
			if strings.Contains(id, text) {
				return fmt.Errorf("receiver has %s", id)
			}
		}
		return nil
	})
}

// testInvalidSpecs applies pipelines with invalid specs.
func (c *fixture) testInvalidSpecs(t *testing.T, r *receiver) {
	t.Helper()
	// kubectl removes only fields that it has applied before.
	if _, err := c.apply(t.Context(), c.eve, sinks(r.sink("index"))); err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[string][]string{
		noDefinitions + "\n  " + noInstances:                   {"spec", "enabled"},
		"debounce: 1h":                                         {"spec.debounce", "10m"},
		"pollInterval: 1s":                                     {"spec.pollInterval", "10s"},
		"batch: {maxItems: 5000}":                              {"spec.batch.maxItems", "1000"},
		"resyncInterval: 1s":                                   {"spec.resyncInterval", "1m"},
		"mode: Sometimes":                                      {"spec.mode", `"Watch", "Poll"`},
		"instances: {resources: [pods/log]}":                   {"spec.instances.resources[0]"},
		"customResourceDefinitions: {include: ['Not A Name']}": {"spec.customResourceDefinitions.include[0]"},
	} {
		_, err := c.apply(t.Context(), c.eve, append(strings.Split(lines, "\n  "), sinks(r.sink("index")))...)
		if err == nil {
			t.Errorf("%s was accepted", lines)
			continue
		}
		contains(t, err.Error(), want...)
	}
	http := func(url, format string) string { return fmt.Sprintf("http: {url: '%s', format: %s}", url, format) }
	for sink, want := range map[string][]string{
		"name: index": {"spec.sinks[0]", "http", "job"},
		"name: index, " + http("ftp://example.com", "DotAI"):       {"spec.sinks[0].http.url", "https"},
		"name: index, " + http("http://me:a@example.com", "DotAI"): {"spec.sinks[0].http.url"},
		"name: index, " + http("http://example.com", "Smoke"): {
			"spec.sinks[0].http.format", `"ClusterWhisperer", "DotAI", "CloudEvents"`,
		},
		"name: Index, " + http("http://example.com", "DotAI"): {"spec.sinks[0].name"},
		"name: index, retry: {maxAttempts: 1000}, " + http("http://example.com", "DotAI"): {
			"spec.sinks[0].retry.maxAttempts", "100",
		},
	} {
		_, err := c.apply(t.Context(), c.eve, sinks("{"+sink+"}"))
		if err == nil {
			t.Errorf("%s was accepted", sink)
			continue
		}
		contains(t, err.Error(), want...)
	}
}
