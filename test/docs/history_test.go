// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

const historyPage = "docs/history.md"

// findAndPutBack follows the page on the history, in the mirrored cluster with the namespace shop. The commands before the deletion of the
// namespace are those of a user with the rights that the page gives.
func (c *mirroredCluster) findAndPutBack(t *testing.T, r *reader) {
	t.Helper()
	root := moduleRoot(t)
	giving, others := splitAt(t, root, historyPage, "## One field")
	beforeDeletion, deleted := splitAt(t, root, historyPage, "## A deleted namespace")
	jane, err := c.User("jane", "on-call")
	if err != nil {
		t.Fatal(err)
	}
	r.follow(t, giving)
	r.setenv(t, "KUBECONFIG="+string(jane))
	r.follow(t, others[:len(beforeDeletion)-len(giving)])
	r.setenv(t, "KUBECONFIG="+c.Env(devcluster.EnvKubeconfig))
	r.follow(t, deleted)
}
