// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
	"github.com/configbutler/slipstream/test/devcluster/process"
)

func all(p *ports) sets.Set[int] {
	numbers := sets.New(p.Replicas...)
	for _, port := range p.fixed() {
		numbers.Insert(*port)
	}
	return numbers
}

func TestPorts(t *testing.T) {
	chosen, lock, err := choosePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if numbers := all(&chosen); numbers.Len() != len(chosen.fixed())+3 || numbers.Has(0) {
		t.Errorf("ports are missing or not distinct: %+v", chosen)
	}
	if err := chosen.chooseReplicas(t.Context(), 1); err != nil || len(chosen.Replicas) != 1 || chosen.Replicas[0] != chosen.Server {
		t.Errorf("%v: the only replica has not the port of clients: %+v", err, chosen)
	}
	if err := chosen.chooseReplicas(t.Context(), 5); err != nil || all(&chosen).Len() != len(chosen.fixed())+5 {
		t.Errorf("%v: ports of replicas are missing or not distinct: %+v", err, chosen)
	}
	if err := chosen.chooseReplicas(t.Context(), blockSize); err == nil {
		t.Error("got more ports than a block has")
	}
}

// TestPortsStayLocked checks that no other cluster gets the ports before all processes of a cluster have ended, although none of them
// listens.
func TestPortsStayLocked(t *testing.T) {
	chosen, lock, err := choosePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("slipstream-devcluster-ports-%d.lock", (chosen.EtcdClient-firstPort)/blockSize))
	part, err := process.Start(process.Spec{
		Name: "sleep", Path: "/bin/sleep", Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log"), Held: lock.File(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if _, err := filelock.Try(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("while a process runs: %v, want %v", err, filelock.ErrHeld)
	}
	if err := part.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again, err := filelock.Try(path)
	if err != nil {
		t.Fatalf("after the end of the process: %v", err)
	}
	_ = again.Release()
}
