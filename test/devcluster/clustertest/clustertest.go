// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest answers how a Go test has a development cluster of its own.
package clustertest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
)

// stopLimit is how long a cluster may take to end.
const stopLimit = 2 * time.Minute

// Start starts a cluster that is stopped when the test ends; an unclean stop fails the
// test. The folder of the options is chosen for the test. What the cluster reports goes
// to the test's log.
func Start(t testing.TB, options devcluster.Options) *devcluster.Cluster {
	t.Helper()
	options.Dir = filepath.Join(t.TempDir(), "cluster")
	options.Progress = writer{t}
	cluster, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatalf("starting a development cluster: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			t.Errorf("stopping the development cluster: %v", err)
		}
	})
	return cluster
}

// writer writes lines to a test's log.
type writer struct {
	t testing.TB
}

func (w writer) Write(line []byte) (int, error) {
	w.t.Helper()
	w.t.Log(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
