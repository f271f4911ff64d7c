// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirrortest starts clusters whose objects are mirrored, and reads the results.
package mirrortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// Deadline is longer than any wait of these tests on a busy machine.
const Deadline = testkit.Timeout

// AdminCluster is a cluster with the server, and the objects and kubectl of the administrator.
type AdminCluster struct {
	*devcluster.Cluster
	*Objects
	// Administrator is for commands that can fail. Run fails the test instead.
	Administrator devcluster.Kubectl
}

// NewAdminCluster starts a cluster with the server.
func NewAdminCluster(t testing.TB, options devcluster.Options) *AdminCluster {
	t.Helper()
	options.Server = true
	return AdminClusterOf(t, clustertest.Start(t, options))
}

// AdminClusterOf returns a started cluster as an AdminCluster.
func AdminClusterOf(t testing.TB, cluster *devcluster.Cluster) *AdminCluster {
	t.Helper()
	return &AdminCluster{Cluster: cluster, Objects: ObjectsOf(t, cluster.Admin()), Administrator: cluster.Kubectl(cluster.Admin())}
}

// Run runs kubectl as the administrator and fails the test if it fails.
func (s *AdminCluster) Run(t testing.TB, arguments ...string) string {
	t.Helper()
	out, err := s.Administrator.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Client returns a client of a user, which is faster than kubectl.
func Client(t testing.TB, user devcluster.Kubeconfig) kubernetes.Interface {
	t.Helper()
	return ClientOf(t, user, kubernetes.NewForConfig)
}

// ClientOf returns a client of a user for other types.
func ClientOf[T any](t testing.TB, user devcluster.Kubeconfig, create func(*rest.Config) (T, error)) T {
	t.Helper()
	config, err := user.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := create(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// OtherLeader waits until a replica with another identity leads, and returns its identity.
func (s *AdminCluster) OtherLeader(t testing.TB, client kubernetes.Interface, than string) (holder string) {
	t.Helper()
	Eventually(t, "another leader", func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(devcluster.ServerNamespace).Get(ctx, "slipstream", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("failed to read the Lease: %w", err)
		}
		if holder = *lease.Spec.HolderIdentity; holder == "" || holder == than {
			return errors.New("no other replica leads")
		}
		return nil
	})
	return holder
}

// LeadingReplica waits until one of a number of replicas leads, and returns its number.
func (s *AdminCluster) LeadingReplica(t testing.TB, replicas int) (leading int) {
	t.Helper()
	Eventually(t, "a replica leads", func(ctx context.Context) error {
		for leading = range replicas {
			// A replica that does not run has no metrics.
			metrics, err := s.ReadReplica(ctx, leading, "/metrics")
			if err == nil && strings.Contains(metrics, "leader_election_master_status{name=\"slipstream\"} 1") {
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leading
}

// Eventually waits until check succeeds, for Deadline at most.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	testkit.EventuallyWithin(t, Deadline, what, check)
}
