// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// costObjects is the number of objects that are created.
	costObjects = 10_000
	// costWriters is the number of objects that are created at the same time.
	costWriters = 8
)

// BenchmarkCost measures what the webhooks cost a cluster: objects of 1 KiB are created as fast as the cluster can, and mirrored, on
// clusters without webhooks, with each of them, and with both. The processor time until all are pushed does not depend on other load.
func BenchmarkCost(b *testing.B) {
	var alone cost
	for _, wiring := range []struct {
		name             string
		audit, admission bool
	}{{name: "none"}, {name: "admission", admission: true}, {name: "audit", audit: true}, {name: "both", audit: true, admission: true}} {
		b.Run("webhooks="+wiring.name, func(b *testing.B) {
			s := mirrortest.NewAdminCluster(b, devcluster.Options{Audit: wiring.audit, Admission: wiring.admission})
			m := s.NewMirror(b, "cost")
			m.Watch(b, "all", "configmaps")
			m.Settled(b)
			var used cost
			for b.Loop() {
				used = measureCost(b, m, mirrortest.Client(b, s.Admin()))
			}
			if alone.total() == 0 {
				alone = used
			}
			used.report(b, alone)
		})
	}
}

// cost is what a number of writes took.
type cost struct {
	took time.Duration
	// used is the processor time of programs.
	used map[string]time.Duration
}

func measureCost(b *testing.B, m *mirrortest.Mirror, client kubernetes.Interface) cost {
	b.Helper()
	before, began := usage.ByProgram(b), time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	for writer := range costWriters {
		group.Go(func() error {
			for number := writer; number < costObjects; number += costWriters {
				object := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%05d", number)}, Data: map[string]string{"value": strings.Repeat("x", 1<<10)},
				}
				if _, err := client.CoreV1().ConfigMaps("cost").Create(ctx, object, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	out := cost{took: time.Since(began), used: map[string]time.Duration{}}
	m.Settled(b)
	for program, used := range usage.ByProgram(b) {
		out.used[program] = used - before[program]
	}
	return out
}

func (c cost) total() (sum time.Duration) {
	for _, used := range c.used {
		sum += used
	}
	return sum
}

// report reports the cost of a write, and compares it with the cost without webhooks.
func (c cost) report(b *testing.B, alone cost) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(c.took.Seconds(), "s")
	b.ReportMetric(c.took.Seconds()/alone.took.Seconds(), "time/none")
	b.ReportMetric(float64(c.total())/float64(alone.total()), "cpu/none")
	for _, program := range []string{"kube-apiserver", "slipstream", "etcd"} {
		b.ReportMetric(float64(c.used[program].Microseconds())/costObjects, program+"-us/write")
	}
}
