// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// BenchmarkCatalogs measures a server whose control plane reports the authors of changes.
func BenchmarkCatalogs(b *testing.B) {
	s := newTestCluster(b)
	measure := func(name string, run func(*testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure("Detection", s.detection)
	measure(fmt.Sprintf("Storm/changes=%d", stormChanges), s.storm)
}

// testCluster is a cluster with the server.
type testCluster struct {
	*mirrortest.AdminCluster
	slipstream versioned.Interface
}

func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, ServerProgram: usage.Server(b)})}
	config, err := s.Admin().RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	if s.slipstream, err = versioned.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	_, err = s.slipstream.ConfigbutlerV1alpha1().SyncPolicies().Create(b.Context(), &v1alpha1.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// gather sets the batch window.
func (s *testCluster) gather(b *testing.B, window time.Duration) {
	b.Helper()
	s.Run(b, "patch", "syncpolicy", v1alpha1.SyncPolicyName, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"batchWindow": %q}}`, window))
}

// restart restarts the server with its data.
func (s *testCluster) restart(b *testing.B) {
	b.Helper()
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := s.StartServer(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// pause waits without sending requests.
func pause(b *testing.B, length time.Duration) {
	b.Helper()
	select {
	case <-time.After(length):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}
