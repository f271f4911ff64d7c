// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// replicas is the number of servers, rounds the number of leaders that end in each way.
	replicas, rounds = 2, 3
	// objects is the number of mirrored ConfigMaps, which a new leader compares.
	objects = 200
	// term is how long the first leader leads at least: a server returns free memory after 30 s to 60 s.
	term = 65 * time.Second
	// look is the interval at which the branch is read.
	look = 20 * time.Millisecond
)

// BenchmarkReplicas measures the servers on the same machine as their control plane, without webhooks and with the audit webhook.
func BenchmarkReplicas(b *testing.B) {
	b.Run("webhooks=none", func(b *testing.B) { takeovers(b, devcluster.Options{}) })
	b.Run("webhooks=audit", func(b *testing.B) { takeovers(b, devcluster.Options{Audit: true}) })
}

func takeovers(b *testing.B, options devcluster.Options) {
	b.Helper()
	options.Storage, options.Replicas = devcluster.StorageEtcd3, replicas
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, options)}
	s.client = mirrortest.Client(b, s.Admin())
	s.mirror = s.NewMirror(b, "changed")
	s.mirror.Watch(b, "config", "configmaps")
	for number := range objects {
		s.change(b, number, "first")
	}
	s.mirror.Equal(b, s.client)
	s.mirror.Settled(b)
	time.Sleep(term) //nolint:forbidigo // The leader stores how late audit events are, and the other replica returns free memory.
	standby := s.standbyMiB(b)
	b.Run("Kill", func(b *testing.B) {
		s.end(b, syscall.SIGKILL)
		b.ReportMetric(standby, "standby-anon-MiB")
	})
	b.Run("Stop", func(b *testing.B) { s.end(b, syscall.SIGTERM) })
}

// testCluster is a cluster with two replicas.
type testCluster struct {
	*mirrortest.AdminCluster
	client  kubernetes.Interface
	mirror  *mirrortest.Mirror
	changes int
}

// standbyMiB returns the anonymous memory of the replica that does not lead, before any replica was started again.
func (s *testCluster) standbyMiB(b *testing.B) float64 {
	b.Helper()
	pids := strings.Fields(s.Env(devcluster.EnvServerPIDs))
	if len(pids) != replicas {
		b.Fatalf("server processes %v, want %d", pids, replicas)
	}
	return usage.MiB(b, pids[replicas-1-s.LeadingReplica(b, replicas)], usage.Anonymous)
}

// end measures the time from a signal to the leader until a change that is made right after it is pushed.
func (s *testCluster) end(b *testing.B, signal syscall.Signal) {
	for b.Loop() {
		var took []time.Duration
		for range rounds {
			took = append(took, s.endOnce(b, signal))
		}
		slices.Sort(took)
		b.ReportMetric(took[rounds/2].Seconds(), "median-s")
		b.ReportMetric(took[rounds-1].Seconds(), "max-s")
	}
	b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
}

func (s *testCluster) endOnce(b *testing.B, signal syscall.Signal) time.Duration {
	b.Helper()
	leading := s.LeadingReplica(b, replicas)
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.StopServer(b.Context(), signal, leading) }()
	s.changes++
	value := fmt.Sprint("value-", s.changes)
	s.change(b, s.changes%objects, value)
	err := wait.PollUntilContextTimeout(b.Context(), look, mirrortest.Deadline, true, func(ctx context.Context) (bool, error) {
		content, err := s.mirror.Git(ctx, "show", "main:"+s.mirror.Folder+"/"+s.mirror.ConfigMapPath(named(s.changes%objects)))
		return err == nil && strings.Contains(content, value), nil
	})
	took := time.Since(began)
	if err := errors.Join(err, <-ended, s.StartServer(b.Context())); err != nil {
		b.Fatal(err)
	}
	s.mirror.Settled(b)
	return took
}

func named(number int) string { return fmt.Sprintf("c%03d", number) }

// change sets the value of a ConfigMap, and creates it first if it does not exist.
func (s *testCluster) change(b *testing.B, number int, value string) {
	b.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: named(number)}, Data: map[string]string{"value": value}}
	client := s.client.CoreV1().ConfigMaps(s.mirror.Namespace)
	_, err := client.Update(b.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		_, err = client.Create(b.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
}
