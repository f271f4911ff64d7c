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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// leftOut are in the ids of what a pipeline for everything tells nobody of unless it is asked to.
var leftOut = []string{
	"/v1/Event/", "/events.k8s.io/v1/Event/", "/coordination.k8s.io/v1/Lease/", "/v1/Endpoints/", "/discovery.k8s.io/v1/EndpointSlice/",
	"/apiextensions.k8s.io/v1/CustomResourceDefinition/",
}

// chosen has a pipeline for everything, and others for less and less of it.
func (s *stage) chosen(t *testing.T) {
	c := s.newScene(t, "chosen")
	r := receive(t, whisperer)
	c.define(t, "widgets", "gadgets", "gizmos")
	c.create(t, "first")
	globs := "customResourceDefinitions: {include: ['*.chosen.example.com'], exclude: ['giz*', gadgets.chosen.example.com]}"
	c.listens(t, prompt, globs, "instances: {}", sinks(r.sink("index")))
	c.knows(t, r, "_cluster/v1/Namespace/chosen", "chosen/chosen.example.com/v1/Widget/first", "chosen/v1/ServiceAccount/default",
		"widgets.chosen.example.com")
	for _, id := range r.Known() {
		if slices.ContainsFunc(leftOut, func(part string) bool { return strings.Contains(id, part) }) {
			t.Errorf("it tells of %s", id)
		}
	}
	c.becomes(t, "counts", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.WatchedTypes < 20 || p.Status.Objects < 50 {
			return fmt.Errorf("%d types with %d objects", p.Status.WatchedTypes, p.Status.Objects)
		}
		return nil
	})

	c.listens(t, prompt, globs, fmt.Sprintf("instances: {resources: [namespaces, widgets.%s]}", c.group), sinks(r.sink("index")))
	c.knows(t, r, "_cluster/v1/Namespace/chosen", "chosen/chosen.example.com/v1/Widget/first", "widgets.chosen.example.com")
	c.lacks(t, r, "/v1/ServiceAccount/")
	c.listens(t, prompt, "customResourceDefinitions: {include: [gadgets.chosen.example.com]}", c.tellsOf(widgets), sinks(r.sink("index")))
	mirrortest.Eventually(t, "it knows what is left", func(context.Context) error {
		if got := fmt.Sprint(r.Known()); got != "[chosen/chosen.example.com/v1/Widget/first gadgets.chosen.example.com]" {
			return fmt.Errorf("it knows %s", got)
		}
		return nil
	})
	c.refusesChoices(t, r)
}

// knows waits until the receiver knows these.
func (c *scene) knows(t *testing.T, r *receiver, want ...string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%s knows %q", r.format, want), func(context.Context) error {
		known := r.Known()
		for _, id := range want {
			if !slices.Contains(known, id) {
				return fmt.Errorf("it does not know %s, but %d others", id, len(known))
			}
		}
		return nil
	})
}

// lacks waits until the receiver knows nothing with a text in its id.
func (c *scene) lacks(t *testing.T, r *receiver, text string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%s knows no %s", r.format, text), func(context.Context) error {
		for _, id := range r.Known() {
			if strings.Contains(id, text) {
				return fmt.Errorf("it knows %s", id)
			}
		}
		return nil
	})
}

// refusesChoices applies pipelines that nobody can have meant.
func (c *scene) refusesChoices(t *testing.T, r *receiver) {
	t.Helper()
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
			t.Errorf("%s is taken", lines)
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
			t.Errorf("%s is taken", sink)
			continue
		}
		contains(t, err.Error(), want...)
	}
}
