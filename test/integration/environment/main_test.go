// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment_test applies steps of plans in a real cluster, with its admission and controllers.
package environment_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
)

// patience is longer than any wait of these tests on a busy machine.
const patience = 2 * time.Minute

// cluster is the shared control plane; each test uses its own namespaces.
var cluster *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) (code int) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "slipstream-environment-")
	if err != nil {
		return fail(err)
	}
	if cluster, err = devcluster.Start(ctx, devcluster.Options{Dir: dir, Pods: true, Progress: os.Stderr}); err != nil {
		return fail(err)
	}
	defer func() {
		if err := cluster.Stop(ctx); err != nil {
			code = fail(err)
		}
		if err := os.Remove(dir); err != nil {
			code = fail(err)
		}
	}()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
