// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// half is the part of a pipeline that one field manager applies: more fields and a sink.
const half = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %s}
spec:
  %s
  sinks: [%s]
`

// testSharedPipeline has two field managers own one sink each.
func (s *testCluster) testSharedPipeline(t *testing.T) {
	c := s.newFixture(t, "shared")
	ours, theirs := receive(t, whisperer), receive(t, events)
	c.define(t, widgets)
	apply := func(manager, lines, sink string) {
		t.Helper()
		manifest := fmt.Sprintf(half, c.name, lines, sink)
		if _, err := s.eve.Kubectl.Feed(t.Context(), manifest, "apply", "--server-side", "--field-manager="+manager, "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	common := prompt + "\n  " + noDefinitions + "\n  " + c.selects(widgets)
	apply("ours", common, ours.sink("ours"))
	apply("theirs", "", theirs.sink("theirs"))
	c.Ready(t, "", "pipe/"+c.name)
	c.create(t, "first")
	for _, r := range []*receiver{ours, theirs} {
		c.waitForKnown(t, r, "shared/shared.example.com/v1/Widget/first")
	}
	apply("theirs", "", "")
	p := c.waitFor(t, "has one sink", func(p *v1alpha1.SyncPipeline) error {
		if len(p.Status.Sinks) != 1 || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("sinks = %+v", p.Status.Sinks)
		}
		return nil
	})
	if len(p.Spec.Sinks) != 1 || p.Spec.Sinks[0].Name != "ours" || p.Spec.Sinks[0].Retry.Backoff == nil {
		t.Errorf("spec.sinks = %+v", p.Spec.Sinks)
	}
	c.create(t, "second")
	c.waitForKnown(t, ours, "shared/shared.example.com/v1/Widget/second")
	if slices.Contains(theirs.Known(), "shared/shared.example.com/v1/Widget/second") {
		t.Error("removed sink received an object")
	}
}

var gaps = regexp.MustCompile(` {2,}`)

// waitForStatus waits until kubectl prints a STATE of the pipeline with a prefix.
func (c *fixture) waitForStatus(t *testing.T, state string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("pipeline %s has the state %q", c.name, state), func(ctx context.Context) error {
		// kubectl prints the state once the server does.
		if printed, err := c.eve.Try.Cell(ctx, "", "pipe/"+c.name, "STATE"); err != nil || !strings.HasPrefix(printed, state) {
			return errors.Join(err, fmt.Errorf("the server printed %q", printed))
		}
		out, err := c.eve.Kubectl.Run(ctx, "get", "pipe", c.name)
		if err != nil {
			return err
		}
		lines := strings.Split(out, "\n")
		at := slices.Index(gaps.Split(lines[0], -1), "STATE")
		if row := gaps.Split(lines[1], -1); at < 0 || at >= len(row) || !strings.HasPrefix(row[at], state) {
			return fmt.Errorf("kubectl printed\n%s", out)
		}
		return nil
	})
}

// testStatus checks the output of kubectl for a pipeline.
func (s *testCluster) testStatus(t *testing.T) {
	c := s.newFixture(t, "described")
	r := receive(t, whisperer)
	contains(t, s.eve.Run(t, "explain", "pipe.spec"), "customResourceDefinitions", "debounce", "sinks\t<[]PipelineSink> -required-",
		"enum: Poll, Watch")
	contains(t, s.eve.Run(t, "explain", "pipe.spec.sinks.http"), "format\t<string> -required-", "enum: CloudEvents, ClusterWhisperer, DotAI")
	contains(t, s.eve.Run(t, "explain", "syncpipelines.status.sinks"), "nextAttemptTime", "rejected")
	c.define(t, widgets)
	c.readyPipeline(t, prompt, sinks(r.sink("index")))
	c.create(t, "first")
	p := c.waitFor(t, "has sent its objects", func(p *v1alpha1.SyncPipeline) error {
		status := &p.Status
		if status.WatchedTypes != 2 || status.Objects != 2 || status.Pending != 0 || len(status.Sinks) != 1 || status.Sinks[0].Delivered != 2 {
			return fmt.Errorf("status = %+v", status)
		}
		return nil
	})
	sink := p.Status.Sinks[0]
	if sink.Name != "index" || sink.LastDeliveryTime == nil || sink.LastDeliveryItems == 0 || sink.LastAnswer == "" ||
		p.Status.LastError != "" {
		t.Errorf("status = %+v", p.Status)
	}
	if by := p.Status.EditedBy; by == nil || by.Username != s.eve.Name {
		t.Errorf("editedBy = %+v", by)
	}
	c.waitForStatus(t, "Up to date")
	row := gaps.Split(strings.Split(s.eve.Run(t, "get", "pipe", c.name), "\n")[1], -1)
	if want := []string{"described", "Watch", "index", "2", "0", "Up to date"}; !slices.Equal(row[:len(want)], want) {
		t.Errorf("kubectl printed %q, want %q", row, want)
	}
	c.mustSync(t, full)
	c.waitForEvent(t, "Normal Synced The sync that eve asked for has ended: 2 objects sent to index")
	contains(t, s.eve.Run(t, "get", "slipstream", "-o", "name"), "syncpipeline.configbutler.ai/described")
	counted, err := s.Counted(context.WithoutCancel(t.Context()), `slipstream_pipeline_deliveries_total`)
	if err != nil || counted == 0 {
		t.Errorf("slipstream_pipeline_deliveries_total = %v: %v", counted, err)
	}
}
