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

// Storage is the storage backend of the server.
type Storage string

// The storage backends.
const (
	// StorageBbolt is a file, which only one server can use.
	StorageBbolt Storage = "bbolt"
	// StorageEtcd3 is the etcd of the control plane, with a prefix for the server.
	StorageEtcd3 Storage = "etcd3"
)

// Options configure a cluster. With only Dir set, it is a control plane and a Git server without the slipstream server.
type Options struct {
	// Dir is the folder of all files of the cluster. It is created if it does not exist, and must be empty if it does. Required.
	Dir string `json:"dir"`
	// Server starts the slipstream server, too, and waits until its API is available through the aggregator.
	Server bool `json:"server"`
	// ServerProgram is the path of the slipstream server. If it is empty, cmd/slipstream of the module at or above the working directory is
	// built, with the race detector if the caller has it.
	ServerProgram string `json:"serverProgram"`
	// ServerArgs are additional flags of the server.
	ServerArgs []string `json:"serverArgs"`
	// ServerEnv are KEY=VALUE lines added to the server's environment.
	ServerEnv []string `json:"serverEnv"`
	// Manifest is the file of the rendered chart that defines the permissions of the server's account. If it is empty, the manifest beside
	// this package is used, which has all permissions that the chart can grant.
	Manifest string `json:"manifest"`
	// Parts are the names of the optional roles of that manifest that the account has in the whole cluster. If it is nil, the account has
	// those that the manifest binds.
	Parts []string `json:"parts"`
	// Storage is the server's storage backend; StorageBbolt if empty.
	Storage Storage `json:"storage"`
	// Replicas is the number of servers, 1 if zero. More than one needs StorageEtcd3, and gets a load balancer.
	Replicas int `json:"replicas"`
	// Audit makes kube-apiserver send audit events of changes to the server.
	Audit bool `json:"audit"`
	// Admission makes kube-apiserver send admission reviews of changes to the server, through the aggregator.
	Admission bool `json:"admission"`
	// AuditLog makes kube-apiserver write the requests of the server and the events for the audit webhook to the file that the method AuditLog
	// returns.
	AuditLog bool `json:"auditLog"`
	// Denials is the reason why requests of the server may be denied in this cluster. If it is empty, the checks of the server's permissions
	// report a denied request as an error.
	Denials string `json:"denials"`
	// Pods starts kube-scheduler and kwok, which reports Pods as running on two simulated nodes: no container starts. Without it, Pods stay
	// pending unless a test runs them.
	Pods bool `json:"pods"`
	// APIServerArgs are additional flags of kube-apiserver.
	APIServerArgs []string `json:"apiServerArgs"`
	// SupportProgram is the path of hack/dev, which contains the Git server, the receiver and the load balancer. If it is empty, it is built
	// like ServerProgram.
	SupportProgram string `json:"supportProgram"`
	// Detached keeps the cluster running after the process that started it has ended. Otherwise the cluster is stopped then, even if that
	// process is killed.
	Detached bool `json:"detached"`
	// Progress receives lines about the progress, if it is not nil.
	Progress io.Writer `json:"-"`
}

// withDefaults returns the options with defaults, or an error if they are invalid.
func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("the folder of the development cluster is not set")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("failed to find the cluster's folder: %w", err)
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
		return o, fmt.Errorf("%d replicas need storage %s: only one server can use a file of %s", o.Replicas, StorageEtcd3, StorageBbolt)
	}
	return o, nil
}

// makeDir creates the cluster's folder, and reports whether it did not exist. It returns an error if the folder is not empty, so that Stop
// removes no other files.
func makeDir(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return false, fmt.Errorf("folder %s is not empty; if it is that of a development cluster, "+
			"stop the cluster with: make dev-down DEV_DIR=%s", dir, dir)
	}
	made = errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("failed to create the cluster's folder: %w", err)
	}
	return made, nil
}
