// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/node"
)

// StartNode starts a node that runs the Pods of a cluster until the test ends. If the test fails, the logs of its containers are written to
// the test's log.
func StartNode(t testing.TB, options node.Options) *node.Node {
	t.Helper()
	running, err := node.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Stop()
		if logs, err := running.Logs(); t.Failed() {
			t.Logf("%s\n%v", logs, err)
		}
	})
	return running
}
