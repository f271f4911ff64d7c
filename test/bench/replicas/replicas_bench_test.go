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

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// replicas is the number of servers, rounds the number of leaders that end in each way.
	replicas, rounds = 2, 3
	// objects is the number of mirrored ConfigMaps, which a new leader compares.
	objects = 200
	// look is the interval at which the branch is read.
	look = 20 * time.Millisecond
)

// BenchmarkReplicas measures the servers on the same machine as their control plane.
func BenchmarkReplicas(b *testing.B) {
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: replicas})}
	s.client = mirrortest.Client(b, s.Admin())
	s.mirror = s.NewMirror(b, "changed")
	s.mirror.Watch(b, "config", "configmaps")
	for number := range objects {
		s.change(b, number, "first")
	}
	s.mirror.Equal(b, s.client)
	s.mirror.Settled(b)
	for name, signal := range map[string]syscall.Signal{"Kill": syscall.SIGKILL, "Stop": syscall.SIGTERM} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.end(b, signal)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
}

// testCluster is a cluster with two replicas.
type testCluster struct {
	*mirrortest.AdminCluster
	client  kubernetes.Interface
	mirror  *mirrortest.Mirror
	changes int
}

// end measures the time from a signal to the leader until a change that is made right after it is pushed.
func (s *testCluster) end(b *testing.B, signal syscall.Signal) {
	var took []time.Duration
	for range rounds {
		took = append(took, s.endOnce(b, signal))
	}
	slices.Sort(took)
	b.ReportMetric(took[rounds/2].Seconds(), "median-s")
	b.ReportMetric(took[rounds-1].Seconds(), "max-s")
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
