// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirrortest answers how a test has a cluster whose objects are mirrored, and looks at what came of it.
package mirrortest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// Deadline is more than anything waited for here takes on a busy machine.
const Deadline = 3 * time.Minute

// AdminCluster is a cluster with the server, as the administrator sees it.
type AdminCluster struct {
	*devcluster.Cluster
	// Administrator is kubectl for what may fail; Run is for what may not.
	Administrator devcluster.Kubectl
}

// NewAdminCluster starts a cluster with the server.
func NewAdminCluster(t testing.TB, options devcluster.Options) *AdminCluster {
	t.Helper()
	options.Server = true
	cluster := clustertest.Start(t, options)
	return &AdminCluster{Cluster: cluster, Administrator: cluster.Kubectl(cluster.Admin())}
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

// Apply applies manifests as the administrator.
func (s *AdminCluster) Apply(t testing.TB, manifests string) {
	t.Helper()
	if _, err := s.Administrator.Feed(t.Context(), manifests, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// Ready waits for the condition Ready.
func (s *AdminCluster) Ready(t testing.TB, arguments ...string) {
	t.Helper()
	s.Run(t, append([]string{"wait", "--for=condition=Ready", "--timeout=180s"}, arguments...)...)
}

// Client is a client of a user for what kubectl would be too slow for.
func Client(t testing.TB, user devcluster.Kubeconfig) kubernetes.Interface {
	t.Helper()
	config, err := user.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// OtherLeader waits until somebody leads, other than one, and returns its identity.
func (s *AdminCluster) OtherLeader(t testing.TB, client kubernetes.Interface, than string) (holder string) {
	t.Helper()
	Eventually(t, "another leader", func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(devcluster.ServerNamespace).Get(ctx, "slipstream", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the Lease: %w", err)
		}
		if holder = *lease.Spec.HolderIdentity; holder == "" || holder == than {
			return errors.New("none yet")
		}
		return nil
	})
	return holder
}

// Eventually waits until check succeeds, for Deadline at most.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	testkit.EventuallyWithin(t, Deadline, what, check)
}
