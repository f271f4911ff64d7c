// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest starts development clusters for Go tests.
package clustertest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// stopLimit is the time in which a cluster must stop.
const stopLimit = 2 * time.Minute

// Start starts a cluster that is stopped when the test ends; a failure to stop it fails the
// test. Start sets the folder of the options. Progress is written
// to the test's log.
func Start(t testing.TB, options devcluster.Options) *devcluster.Cluster {
	t.Helper()
	options.Dir = filepath.Join(t.TempDir(), "cluster")
	options.Progress = writer{t}
	cluster, err := devcluster.Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start a development cluster: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			t.Errorf("stop the development cluster: %v", err)
		}
	})
	return cluster
}

// Plugin returns the plugin of kubectl, run with a kubeconfig. It is built first if that is needed.
func Plugin(t testing.TB, user devcluster.Kubeconfig) devcluster.Kubectl {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := programs.Product(t.Context(), root, "cmd/kubectl-slipstream")
	if err != nil {
		t.Fatal(err)
	}
	return devcluster.Kubectl{Program: program, User: user}
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
