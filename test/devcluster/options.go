// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Storage names the engine in which the server keeps its objects.
type Storage string

// The engines of the server.
const (
	// StorageBbolt is a file of one server.
	StorageBbolt Storage = "bbolt"
	// StorageEtcd3 is the etcd of the control plane, under a prefix of its own.
	StorageEtcd3 Storage = "etcd3"
)

// Options say what to start. The zero value, with a Dir, is a control plane and a Git
// server without the slipstream server.
type Options struct {
	// Dir is the folder that gets everything the cluster writes. It is made if it does
	// not exist and must be empty if it does. Required.
	Dir string `json:"dir"`
	// Server starts the slipstream server too and waits until its API answers through
	// the aggregator.
	Server bool `json:"server"`
	// ServerProgram is the slipstream server's file; empty builds cmd/slipstream of
	// the module at or above the working directory, with the race detector if the caller has it.
	ServerProgram string `json:"serverProgram"`
	// ServerArgs are flags for the server, after those it is given anyway.
	ServerArgs []string `json:"serverArgs"`
	// ServerEnv are KEY=VALUE lines added to the server's environment.
	ServerEnv []string `json:"serverEnv"`
	// Manifest is the file of the rendered chart from which the server's account has its rights; empty is the one with all that
	// can be given, which is beside this package.
	Manifest string `json:"manifest"`
	// Parts are the roles of that manifest, of those that not every server needs, that the account has in the whole cluster, by
	// name; nil leaves it those that the manifest binds.
	Parts []string `json:"parts"`
	// Storage is the server's engine; StorageBbolt if empty.
	Storage Storage `json:"storage"`
	// Replicas is the number of servers, 1 if zero. More than one needs StorageEtcd3;
	// a balancer stands in front of them.
	Replicas int `json:"replicas"`
	// Audit makes kube-apiserver tell the server of every change that it has made.
	Audit bool `json:"audit"`
	// Admission makes kube-apiserver ask the server about every change, behind the aggregator.
	Admission bool `json:"admission"`
	// AuditLog makes kube-apiserver write what the server asks of it, and what the audit webhook is told, to the file AuditLog.
	AuditLog bool `json:"auditLog"`
	// Denials says why requests of the server may be denied in this cluster. Without a reason, those who judge its rights take it
	// for a fault.
	Denials string `json:"denials"`
	// Pods starts kube-scheduler and kwok, which reports Pods as running, on two nodes that do not exist: no container starts.
	// Without it Pods stay pending, unless a test runs them.
	Pods bool `json:"pods"`
	// APIServerArgs are flags for kube-apiserver, after those it is given anyway.
	APIServerArgs []string `json:"apiServerArgs"`
	// SupportProgram is the file of hack/dev, which serves Git and balances; empty
	// builds it as ServerProgram.
	SupportProgram string `json:"supportProgram"`
	// Detached lets the cluster live on when the process that started it ends. Without
	// it the cluster is stopped then, however that process ends.
	Detached bool `json:"detached"`
	// Progress gets lines that say what is going on; nil keeps quiet.
	Progress io.Writer `json:"-"`
}

// withDefaults returns the options with every field set, or what is wrong with them.
func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("a development cluster needs a folder")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("finding the cluster's folder: %w", err)
	}
	o.Dir = dir
	if o.Storage == "" {
		o.Storage = StorageBbolt
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	switch {
	case o.Storage != StorageBbolt && o.Storage != StorageEtcd3:
		return o, fmt.Errorf("storage %q: want %s or %s", o.Storage, StorageBbolt, StorageEtcd3)
	case o.Replicas < 1:
		return o, fmt.Errorf("%d replicas: want 1 or more", o.Replicas)
	case o.Replicas > 1 && o.Storage != StorageEtcd3:
		return o, fmt.Errorf("%d replicas need storage %s: a file of %s has one server", o.Replicas, StorageEtcd3, StorageBbolt)
	}
	return o, nil
}

// makeDir makes the cluster's folder and reports whether it was not there before. It
// refuses one that holds anything, lest Stop remove what somebody else put there.
func makeDir(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return false, fmt.Errorf("the folder %s is not empty: if it holds a development cluster, `make dev-down DEV_DIR=%s` ends it", dir, dir)
	}
	made = errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("making the cluster's folder: %w", err)
	}
	return made, nil
}
