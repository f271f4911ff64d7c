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

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// stopLimit is the time in which a cluster must stop, longer than its servers have for it.
const stopLimit = 5 * time.Minute

// Start starts a cluster that is stopped when the test ends; a failure to stop it fails the
// test. Start sets the folder of the options. Progress is written to the test's log.
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
	return devcluster.Kubectl{Program: Program(t, "cmd/kubectl-slipstream"), User: user}
}

// Program returns the path of a program of the module, such as cmd/slipstream, from programs.ProductOnce.
func Program(t testing.TB, packagePath string) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := programs.ProductOnce(t.Context(), root, packagePath)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Again makes a write, and repeats it after a pause, for twelve seconds at most, while kube-apiserver cannot complete it. When the server
// ends an HTTP/2 connection, it names the last request that it carries out. kube-apiserver repeats later ones on another connection, but
// not those with a body, which it does not keep. They get 503. repeated is called before a write is repeated for the first time.
func Again(write func() error, repeated func(failure error)) error {
	var failure error
	err := wait.ExponentialBackoff(wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 8}, func() (bool, error) {
		first := failure == nil
		failure = write()
		if failure == nil || !strings.Contains(failure.Error(), "unable to handle the request") {
			return true, failure
		}
		if first {
			repeated(failure)
		}
		return false, nil
	})
	if wait.Interrupted(err) {
		return failure
	}
	return err
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
