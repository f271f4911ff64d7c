// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devcluster starts clusters for development and tests on loopback, each in its own folder: etcd,
// kube-apiserver, kube-controller-manager, a Git server, a receiver of pipelines' events and the slipstream server,
// with kube-scheduler and kwok if Pods must run. It stops exactly the processes that it started.
package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
	"github.com/configbutler/slipstream/test/devcluster/process"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/devcluster/progress"
)

const (
	// cleanupLimit is the timeout for stopping what a failed Start has started.
	cleanupLimit = time.Minute
	// gracefulLimit is the timeout of a graceful shutdown of the server.
	gracefulLimit = 2 * time.Minute
	// dumpLimit is the timeout for printing the stacks of its goroutines.
	dumpLimit = 10 * time.Second
)

// Cluster is a running development cluster.
type Cluster struct {
	files    layout
	reporter *progress.Reporter
	// client is the client for the health endpoints of all parts.
	client *http.Client
	guard  *guard
	// portsLock keeps the ports from other clusters. The parts inherit it, so it outlives this process if they do. Nil after Load.
	portsLock *filelock.Lock

	// mutex guards the state.
	mutex sync.Mutex
	state state
}

// Start starts a cluster and returns when all its parts are ready, including the slipstream API if the options request
// it. The first call on a machine builds the control plane, which takes minutes. If it fails, everything that it
// started has been stopped. The folder with the logs is kept if a part failed to start.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{files: layout(options.Dir)}
	if options.Progress != nil {
		c.reporter = progress.NewReporter(options.Progress)
	}
	if err := c.prepare(ctx, options); err != nil {
		return nil, errors.Join(err, c.releasePorts())
	}
	if err := c.startAll(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return nil, errors.Join(err, c.stopAll(cleanup), c.guard.dismiss(cleanup), c.releasePorts())
	}
	return c, nil
}

// Load returns the cluster that was started in a folder, by this process or another.
func Load(dir string) (*Cluster, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("failed to find the cluster's folder: %w", err)
	}
	c := &Cluster{files: layout(absolute)}
	if c.state, err = readState(c.files.state()); err != nil {
		return nil, err
	}
	c.client, err = newHealthClient(c.files)
	return c, err
}

// Report sets the reporter of the next operations of the cluster.
func (c *Cluster) Report(reporter *progress.Reporter) {
	c.reporter = reporter
}

// Stop stops all processes of the cluster, waits until they have ended, and removes the files of the cluster, and its
// folder if Start created it. It returns an error if the server had to be killed, if it reported a data race, or if
// something could not be removed.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ended := endGracefully(ctx, c.servers(nil), syscall.SIGTERM)
	failure := errors.Join(ended, c.noteRights(ctx), c.stopAll(ctx), raceReport(c.files.log(serverPart)))
	for _, path := range c.files.all() {
		failure = errors.Join(failure, os.RemoveAll(path))
	}
	failure = errors.Join(failure, c.guard.dismiss(ctx), c.releasePorts())
	if c.state.MadeDir {
		failure = errors.Join(failure, os.Remove(string(c.files)))
	}
	return failure
}

// releasePorts releases the ports of a cluster that has ended.
func (c *Cluster) releasePorts() error {
	if c.portsLock == nil {
		return nil
	}
	return c.portsLock.Release()
}

// prepare creates the folder, and the programs, certificates and ports that the parts need.
func (c *Cluster) prepare(ctx context.Context, options Options) error {
	c.state.Options = options
	if err := c.findPrograms(ctx); err != nil {
		return err
	}
	var err error
	if c.state.MadeDir, err = makeDir(options.Dir); err != nil {
		return err
	}
	for _, folder := range c.files.folders() {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("failed to create the cluster's folders: %w", err)
		}
	}
	if c.state.Ports, c.portsLock, err = choosePorts(ctx, options.Replicas); err != nil {
		return err
	}
	if err := c.writeCredentials(); err != nil {
		return err
	}
	if c.client, err = newHealthClient(c.files); err != nil {
		return err
	}
	return c.state.write(c.files.state())
}

// findPrograms builds the programs that the options do not set.
func (c *Cluster) findPrograms(ctx context.Context) error {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		return err
	}
	c.state.Programs, err = programs.Build(ctx, programs.ControlPlaneModule(root), c.reporter)
	if err != nil {
		return err
	}
	options := &c.state.Options
	if options.Pods {
		if err = c.findKwok(ctx, root); err != nil {
			return err
		}
	}
	if options.SupportProgram == "" {
		if options.SupportProgram, err = programs.ProductOnce(ctx, root, "hack/dev"); err != nil {
			return err
		}
	}
	if options.Server && options.ServerProgram == "" {
		if options.ServerProgram, err = programs.ProductOnce(ctx, root, "cmd/slipstream"); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts the parts in the order of their dependencies.
func (c *Cluster) startAll(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.startGuard(); err != nil {
		return err
	}
	for _, part := range []part{c.gitServer(), c.receiver(), c.etcd(), c.apiServer(), c.controllerManager()} {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	if err := c.prepareNamespace(ctx); err != nil {
		return err
	}
	if c.state.Options.Pods {
		if err := c.startPods(ctx); err != nil {
			return err
		}
	}
	if c.state.Options.Server {
		return c.startServers(ctx)
	}
	return c.writeEnvironment()
}

// stopAll stops the processes. The slipstream servers are stopped gracefully, so that every test covers their shutdown.
// The others have no data to keep and are killed, in reverse order.
func (c *Cluster) stopAll(ctx context.Context) error {
	failure := endGracefully(ctx, c.servers(nil), syscall.SIGTERM)
	for _, running := range slices.Backward(c.state.Processes) {
		failure = errors.Join(failure, running.Stop(ctx, syscall.SIGKILL))
	}
	c.state.Processes = nil
	return failure
}

// endGracefully sends the servers one signal, and returns an error if one of them still runs after gracefulLimit.
func endGracefully(ctx context.Context, servers []process.Process, signal syscall.Signal) error {
	var failure error
	// All get the signal before the first wait, and only once: a second signal aborts a server's graceful shutdown.
	for _, running := range servers {
		failure = errors.Join(failure, running.Signal(signal))
	}
	for _, running := range servers {
		failure = errors.Join(failure, waitEnded(ctx, running))
	}
	return failure
}

// waitEnded waits until a server has ended after a signal. If it does not, the server prints the stacks of its
// goroutines, which show what it waits for, and its log is kept.
func waitEnded(ctx context.Context, running process.Process) error {
	limited, cancel := context.WithTimeout(ctx, gracefulLimit)
	defer cancel()
	failure := running.Wait(limited)
	if failure == nil {
		return nil
	}
	limited, cancel = context.WithTimeout(ctx, dumpLimit)
	defer cancel()
	if err := running.Stop(limited, syscall.SIGQUIT); err != nil {
		return errors.Join(failure, err)
	}
	kept, err := keepLog(running)
	if err != nil {
		return errors.Join(failure, err)
	}
	return fmt.Errorf("%w: the stacks of its goroutines are at the end of %s", failure, kept)
}

// keepLog copies a process's log to a place that Stop does not remove.
func keepLog(running process.Process) (path string, err error) {
	content, err := os.ReadFile(running.Log)
	if err != nil {
		return "", fmt.Errorf("failed to read the log: %w", err)
	}
	file, err := os.CreateTemp("", running.Name+"-*.log")
	if err != nil {
		return "", fmt.Errorf("failed to keep the log: %w", err)
	}
	_, err = file.Write(content)
	return file.Name(), errors.Join(err, file.Close())
}
