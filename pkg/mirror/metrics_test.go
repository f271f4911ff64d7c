// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

func TestMetrics(t *testing.T) {
	s := newFixture(t)
	s.idle()
	counters := map[string]metrics.CounterMetric{
		"objects_scanned_total": objectsScanned, "objects_written_total": objectsWritten, "files_deleted_total": filesDeleted,
		"commits_total": commits, "commit_bytes_total": commitBytes, "commit_batches_total": commitBatches,
		"push_retries_total":         pushRetries.WithLabelValues("unreachable"),
		"mirror_events_mapped_total": eventsMapped,
	}
	read := func() map[string]float64 {
		values := map[string]float64{}
		for name, counter := range counters {
			value, err := testutil.GetCounterMetricValue(counter)
			if err != nil {
				t.Fatal(err)
			}
			values[name] = value
		}
		return values
	}
	before, pushed := read(), observations(t)
	s.git.loseResponses.Store(1)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.cluster.remove(configMap("a"))
	s.mirrored()
	s.idle()
	s.compareAgain()
	s.idle()
	// Other tests increment the counters at the same time.
	for name, value := range read() {
		if value <= before[name] {
			t.Errorf("%s did not grow", name)
		}
	}
	if observations(t) < pushed+3 {
		t.Error("push duration is not measured for each change")
	}
}

// observations returns the number of changes in the histogram of push durations.
func observations(t *testing.T) uint64 {
	t.Helper()
	count, err := testutil.GetHistogramMetricCount(pushSeconds.ObserverMetric)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestRetriesAreCountedByReason(t *testing.T) {
	for reason, err := range map[string]error{
		"unreachable":  &gitrepo.Error{Kind: gitrepo.Unreachable},
		"unauthorized": fmt.Errorf("push: %w", &gitrepo.Error{Kind: gitrepo.Unauthorized}),
		"not_found":    &gitrepo.Error{Kind: gitrepo.NotFound},
		"rejected":     &gitrepo.Error{Kind: gitrepo.Rejected},
		"too_large":    &gitrepo.Error{Kind: gitrepo.TooLarge},
		"protocol":     &gitrepo.Error{Kind: gitrepo.Protocol},
		"invalid":      &gitrepo.Error{Kind: gitrepo.Invalid},
		"held":         leaseHeldError{error: errors.New("held")},
		"other":        errors.New("no space left on device"),
		"":             fmt.Errorf("push: %w", gitrepo.ErrMoved),
	} {
		t.Run(reason, func(t *testing.T) {
			counter := metrics.CounterMetric(rebaseRetries)
			if reason != "" {
				counter = pushRetries.WithLabelValues(reason)
			}
			before, _ := testutil.GetCounterMetricValue(counter)
			countRetry(err)
			if after, _ := testutil.GetCounterMetricValue(counter); after <= before {
				t.Errorf("error %v is not counted as %q", err, reason)
			}
		})
	}
}

func TestOldestChange(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	waits := func(suspended bool, seen ...time.Time) *destination {
		object := &v1alpha1.GitDestination{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(suspended, seen)}, Spec: v1alpha1.GitDestinationSpec{Suspend: suspended},
		}
		d := newDestination(object)
		d.plan.Store(&destinationPlan{object: object})
		for i, at := range seen {
			d.queue.Durable(outbox.Row{Sequence: uint64(i + 1), Change: outbox.Change{Seen: at}})
		}
		return d
	}
	for name, test := range map[string]struct {
		destinations []*destination
		want         float64
	}{
		"nothing waits":            {[]*destination{waits(false)}, 0},
		"the first of one":         {[]*destination{waits(false, at(10), at(20))}, 10},
		"the first of all":         {[]*destination{waits(false, at(20)), waits(false, at(15))}, 15},
		"a suspended one may wait": {[]*destination{waits(true, at(5)), waits(false, at(20))}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(nil, nil, nil)
			for _, d := range test.destinations {
				r.destinations[d.key] = d
			}
			if got := r.oldest(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
