// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// gather returns the values of the metrics of one store by name, without the prefix, followed by the reason if there is
// one. The value of a histogram is its number of observations.
func gather(t *testing.T, from metrics.Gatherer, store string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		name, found := strings.CutPrefix(family.GetName(), "slipstream_storage_")
		if !found {
			continue
		}
		for _, metric := range family.Metric {
			labels := map[string]string{}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["store"] != store {
				continue
			}
			key := strings.TrimSuffix(name+" "+labels["reason"], " ")
			values[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// openNamed opens an engine on a file of the given name, and returns it with a registry of its metrics.
func openNamed(t *testing.T, store string, options bolt.Options) (*bolt.Engine, metrics.KubeRegistry) {
	t.Helper()
	e, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), store+".db"), options.WithoutSync())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(bolt.NewCollector(e))
	return e, registry
}

func TestGaugesFollowTheStore(t *testing.T) {
	e, registry := openNamed(t, "gauges", bolt.Options{CompactionInterval: -1})
	for i := range 5 {
		set(t, e, fmt.Sprintf("/key/%d", i), strings.Repeat("x", 1<<16))
	}
	unset(t, e, "/key/0")
	if _, err := e.Grant(t.Context(), &pb.LeaseGrantRequest{TTL: 60}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: 4}); err != nil {
		t.Fatal(err)
	}
	values := gather(t, registry, "gauges")
	for name, want := range map[string]float64{
		"keys": 4, "leases": 1, "revision": 7, "compact_revision": 4, "watchers": 0, "watcher_lag_revisions": 0,
	} {
		if got, found := values[name]; !found || got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if size, free := values["size_bytes"], values["free_bytes"]; size < 5<<16 || free <= 0 || free >= size {
		t.Errorf("free_bytes = %v of size_bytes = %v", free, size)
	}
	if size, free := values["volume_size_bytes"], values["volume_free_bytes"]; size < values["size_bytes"] || free <= 0 || free > size {
		t.Errorf("volume_free_bytes = %v of volume_size_bytes = %v", free, size)
	}
}

func TestGaugesShowTheSlowestWatch(t *testing.T) {
	e, registry := openNamed(t, "watches", bolt.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := bolt.NewClient(ctx, e)
	stuck := client.Watch(ctx, "/", clientv3.WithPrefix())
	quick := client.Watch(ctx, "/elsewhere/", clientv3.WithPrefix())
	testkit.EventuallyTrue(t, "two watches", func() bool { return gather(t, registry, "watches")["watchers"] == 2 })
	for i := range 3 {
		set(t, e, fmt.Sprintf("/key/%d", i), "")
	}
	// The watch without changes is up to date; the one without a reader is at its start.
	testkit.EventuallyTrue(t, "the lag", func() bool { return gather(t, registry, "watches")["watcher_lag_revisions"] == 3 })
	for reached := int64(0); reached < e.Revision(); {
		reached = (<-stuck).Header.Revision
	}
	testkit.EventuallyTrue(t, "the end of the lag", func() bool { return gather(t, registry, "watches")["watcher_lag_revisions"] == 0 })
	cancel()
	for range stuck {
	}
	for range quick {
	}
	testkit.EventuallyTrue(t, "no watches", func() bool { return gather(t, registry, "watches")["watchers"] == 0 })
}

func TestCountersFollowTheWork(t *testing.T) {
	e, _ := openNamed(t, "counters", bolt.Options{CompactionInterval: -1})
	for range 3 {
		set(t, e, "/key", "value")
	}
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: 3}); err == nil {
		t.Fatal("compacted twice")
	}
	values := gather(t, legacyregistry.DefaultGatherer, "counters")
	for name, want := range map[string]float64{
		// Three puts and what a compaction writes; a check writes nothing.
		"commit_duration_seconds": 4, "commit_requests": 4, "compaction_duration_seconds": 1,
		"write_failures_total disk_full": 0, "write_failures_total io": 0, "write_failures_total refused": 0,
	} {
		if got, found := values[name]; !found || got != want {
			t.Errorf("%s = %v (found: %v), want %v", name, got, found, want)
		}
	}
}

func TestClosedEngineHasNoGauges(t *testing.T) {
	e, registry := openNamed(t, "closed", bolt.Options{})
	closeEngine(t, e)
	if values := gather(t, registry, "closed"); len(values) != 0 {
		t.Errorf("metrics of a closed engine: %v", values)
	}
}
