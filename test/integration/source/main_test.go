// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source_test runs pkg/kube/watch against a real kube-apiserver.
package source_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// patience is longer than any wait of these tests on a busy machine.
const patience = 2 * time.Minute

// cluster is the shared control plane; each test uses its own namespaces and types.
var cluster *devcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(runWithCluster(m))
}

func runWithCluster(m *testing.M) (code int) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "slipstream-source-")
	if err != nil {
		return fail(err)
	}
	if cluster, err = devcluster.Start(ctx, devcluster.Options{Dir: dir, Progress: os.Stderr}); err != nil {
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

// checkGoroutines fails the test if goroutines are left. It must be called first, so that it checks last.
func checkGoroutines(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		testkit.Eventually(t, "no goroutines are left", func() error { return goleak.Find(before) })
	})
}

func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// run runs f until the test ends, and waits for it.
func run(t *testing.T, f func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
