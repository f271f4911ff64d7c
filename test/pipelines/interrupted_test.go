// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// instances is the initial number of ConfigMaps, writers the number of concurrent clients that create them.
	instances, writers = 10_000, 32
	// removals is the number of ConfigMaps deleted each time while the server is stopped: between two runs, and then during a run.
	removals = 200
	// batchLimit is the maximum size of batches.
	batchLimit = 1000
)

// many returns the name of a ConfigMap.
func many(number int) string { return fmt.Sprintf("m%05d", number) }

// testInterruptedRun kills the server during a full run of many objects.
func (s *testCluster) testInterruptedRun(t *testing.T) {
	c := s.newFixture(t, "interrupted")
	r := receive(t, whisperer)
	forEach(t, instances, func(ctx context.Context, number int) error {
		_, err := s.admin.Client.CoreV1().ConfigMaps(c.name).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: many(number), Labels: map[string]string{"tier": "front"}},
		}, metav1.CreateOptions{})
		return err
	})
	c.readyPipeline(t, fmt.Sprintf("debounce: 10m\n  batch: {maxItems: %d, maxWait: 5m}", batchLimit), noDefinitions,
		"instances: {resources: [configmaps]}", sinks(r.sink("index")))
	run := c.mustSync(t, all)
	c.expectCalls(t, r, run, instances, 0)

	s.restart(t, syscall.SIGTERM, func() { c.deleteConfigMaps(t, 0, removals) })
	c.expectCalls(t, r, c.mustSync(t, all), 0, removals)

	// The receiver accepts two calls of the run before the server is killed.
	r.Next(receivertest.Status(http.StatusOK), receivertest.Status(http.StatusOK))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	id := c.mustRequest(t, full)
	c.waitFor(t, "has sent some objects", func(p *v1alpha1.SyncPipeline) error {
		run := p.Status.CurrentRun
		if run == nil || run.ID != id || run.Phase != v1alpha1.PipelineRunSending || p.Status.Sinks[0].Failures == 0 {
			return fmt.Errorf("currentRun = %+v", run)
		}
		if run.Done == 0 || run.Done >= run.Total || run.Total < instances-removals {
			return fmt.Errorf("sent %d of %d", run.Done, run.Total)
		}
		return nil
	})
	s.restart(t, syscall.SIGKILL, func() {
		c.deleteConfigMaps(t, removals, removals)
		r.Always()
	})
	c.waitForRun(t, id)
	c.mustSync(t, all)
	c.expectAllSent(t, r)
}

// expectCalls expects calls of at most the batch size with these numbers of ConfigMaps.
func (c *fixture) expectCalls(t *testing.T, r *receiver, run *v1alpha1.PipelineRun, upserts, deletes int) {
	t.Helper()
	if run.Done != run.Total || run.Total < int64(upserts+deletes) {
		t.Errorf("run = %+v", run)
	}
	gotUpserts, gotDeletes := 0, 0
	for _, call := range r.rest() {
		lines := summarize(t, []receivertest.Call{call})
		if len(lines) > batchLimit {
			t.Errorf("call with %d objects", len(lines))
		}
		for _, line := range lines {
			switch {
			case strings.HasPrefix(line, "+m"):
				gotUpserts++
			case strings.HasPrefix(line, "-m"):
				gotDeletes++
			}
		}
	}
	if gotUpserts != upserts || gotDeletes != deletes {
		t.Errorf("%d upserts and %d deletes, want %d and %d", gotUpserts, gotDeletes, upserts, deletes)
	}
}

// expectAllSent expects the run to have sent every existing ConfigMap, and the receiver to have exactly these.
func (c *fixture) expectAllSent(t *testing.T, r *receiver) {
	t.Helper()
	last := map[string]bool{}
	for _, line := range summarize(t, r.rest()) {
		name, _, _ := strings.Cut(line[1:], " ")
		last[name] = line[0] == '+'
	}
	for number := range instances {
		upserted, found := last[many(number)]
		switch {
		case number < removals && found, number >= removals && number < 2*removals && (upserted || !found), number >= 2*removals && !upserted:
			t.Fatalf("%s: sent %v, last change is an upsert: %v", many(number), found, upserted)
		}
	}
	mirrortest.Eventually(t, "the receiver has the existing ConfigMaps", func(context.Context) error {
		known := 0
		for _, id := range r.Known() {
			if strings.HasPrefix(id, c.name+"/v1/ConfigMap/m") {
				known++
			}
		}
		if known != instances-2*removals {
			return fmt.Errorf("receiver has %d", known)
		}
		return nil
	})
	c.waitFor(t, "is idle", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.Pending != 0 || p.Status.CurrentRun != nil || len(p.Status.PendingRequests) > 0 {
			return errors.New("objects, run or requests are pending")
		}
		return nil
	})
}
