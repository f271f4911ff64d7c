// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testCluster is a cluster with a running server.
type testCluster struct{ *mirrortest.AdminCluster }

// newTestCluster starts a server with the permissions for mirroring only, unless the options set others.
func newTestCluster(t *testing.T, options devcluster.Options) *testCluster {
	t.Helper()
	if options.Parts == nil {
		options.Parts = []string{"slipstream-server-mirrored", "slipstream-server-credentials"}
	}
	return &testCluster{mirrortest.NewAdminCluster(t, options)}
}

// refused applies manifests, which must be rejected, and returns the error.
func (s *testCluster) refused(t *testing.T, as devcluster.Kubectl, manifests string) string {
	t.Helper()
	_, err := as.Feed(t.Context(), manifests, "apply", "-f", "-")
	if err == nil {
		t.Fatalf("manifests were not rejected:\n%s", manifests)
	}
	return err.Error()
}

// mirror is a namespace with a destination that has its own repository.
type mirror struct {
	*testCluster
	*mirrortest.Mirror
}

func (s *testCluster) newMirror(t *testing.T, namespace string, extra ...string) *mirror {
	t.Helper()
	return &mirror{testCluster: s, Mirror: s.NewMirror(t, namespace, extra...)}
}
