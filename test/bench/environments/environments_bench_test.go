// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// BenchmarkEnvironments measures a server on the same machine as its control plane, which reports the authors of changes.
func BenchmarkEnvironments(b *testing.B) {
	s := newTestCluster(b)
	measure := func(name string, run func(*testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure(fmt.Sprintf("Sync/workloads=%d", workloads), s.sync)
	measure("Detection", s.detection)
	measure(fmt.Sprintf("List/environments=%d", listed), s.list)
}

// testCluster is a cluster with the server.
type testCluster struct {
	*mirrortest.AdminCluster
	config     *rest.Config
	slipstream versioned.Interface
}

func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true})}
	var err error
	if s.config, err = s.Admin().RESTConfig(); err != nil {
		b.Fatal(err)
	}
	if s.slipstream, err = versioned.NewForConfig(s.config); err != nil {
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
