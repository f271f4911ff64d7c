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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// instances are how many ConfigMaps there are in the beginning, writers how many make them at once.
	instances, writers = 10_000, 32
	// gone go while there is no server, first between two runs, then within one.
	gone = 200
	// batchLimit is the size of batches.
	batchLimit = 1000
)

// many is the name of one of them.
func many(number int) string { return fmt.Sprintf("m%05d", number) }

// interrupted has a pipeline tell of many objects, and be killed while it tells of all of them again.
func (s *stage) interrupted(t *testing.T) {
	c := s.newScene(t, "interrupted")
	r := receive(t, whisperer)
	forEach(t, instances, func(ctx context.Context, number int) error {
		_, err := s.admin.Client.CoreV1().ConfigMaps(c.name).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: many(number), Labels: map[string]string{"tier": "front"}},
		}, metav1.CreateOptions{})
		return err
	})
	c.listens(t, fmt.Sprintf("debounce: 10m\n  batch: {maxItems: %d, maxWait: 5m}", batchLimit), noDefinitions,
		"instances: {resources: [configmaps]}", sinks(r.sink("index")))
	run := c.synced(t, all)
	c.tells(t, r, run, instances, 0)

	s.restart(t, syscall.SIGTERM, func() { c.deleteConfigMaps(t, 0, gone) })
	c.tells(t, r, c.synced(t, all), 0, gone)

	// It takes two calls of the run and no more before it is killed.
	r.Next(receivertest.Status(http.StatusOK), receivertest.Status(http.StatusOK))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	id := c.asks(t, full)
	c.becomes(t, "has sent a part", func(p *v1alpha1.SyncPipeline) error {
		run := p.Status.CurrentRun
		if run == nil || run.ID != id || run.Phase != v1alpha1.PipelineRunSending || p.Status.Sinks[0].Failures == 0 {
			return fmt.Errorf("of the run it says %+v", run)
		}
		if run.Done == 0 || run.Done >= run.Total || run.Total < instances-gone {
			return fmt.Errorf("it has sent %d of %d", run.Done, run.Total)
		}
		return nil
	})
	s.restart(t, syscall.SIGKILL, func() {
		c.deleteConfigMaps(t, gone, gone)
		r.Always()
	})
	c.finishes(t, id)
	c.synced(t, all)
	c.toldOfAll(t, r)
}

// tells expects calls that are as large as they may be and tell of so many of the ConfigMaps.
func (c *scene) tells(t *testing.T, r *receiver, run *v1alpha1.PipelineRun, upserts, deletes int) {
	t.Helper()
	if run.Done != run.Total || run.Total < int64(upserts+deletes) {
		t.Errorf("the run says %+v", run)
	}
	gotUpserts, gotDeletes := 0, 0
	for _, call := range r.rest() {
		lines := story(t, []receivertest.Call{call})
		if len(lines) > batchLimit {
			t.Errorf("a call tells of %d objects", len(lines))
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
		t.Errorf("it tells of %d and of %d that are gone, want %d and %d", gotUpserts, gotDeletes, upserts, deletes)
	}
}

// toldOfAll expects the run to have told of every ConfigMap that there is, and the receiver to know what there is.
func (c *scene) toldOfAll(t *testing.T, r *receiver) {
	t.Helper()
	last := map[string]bool{}
	for _, line := range story(t, r.rest()) {
		name, _, _ := strings.Cut(line[1:], " ")
		last[name] = line[0] == '+'
	}
	for number := range instances {
		told, there := last[many(number)]
		switch {
		case number < gone && there, number >= gone && number < 2*gone && (told || !there), number >= 2*gone && !told:
			t.Fatalf("of %s it tells %v, %v", many(number), there, told)
		}
	}
	mirrortest.Eventually(t, "the receiver knows what there is", func(context.Context) error {
		known := 0
		for _, id := range r.Known() {
			if strings.HasPrefix(id, c.name+"/v1/ConfigMap/m") {
				known++
			}
		}
		if known != instances-2*gone {
			return fmt.Errorf("it knows %d", known)
		}
		return nil
	})
	c.becomes(t, "has nothing left to do", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.Pending != 0 || p.Status.CurrentRun != nil || len(p.Status.PendingRequests) > 0 {
			return errors.New("it has")
		}
		return nil
	})
}
