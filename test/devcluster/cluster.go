// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devcluster answers how to have a whole set to develop and test against: on
// loopback, in one folder, side by side with others, it starts etcd, kube-apiserver,
// kube-controller-manager, a Git server, a receiver of pipelines' events and the
// slipstream server, with kube-scheduler and kwok if Pods are to run, and ends exactly
// what it started.
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

	"github.com/configbutler/slipstream/test/devcluster/process"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/devcluster/progress"
)

const (
	// cleanupLimit is how long it may take to end what a failed Start has started.
	cleanupLimit = time.Minute
	// gracefulLimit is how long the server may take to end when it is asked to.
	gracefulLimit = time.Minute
	// dumpLimit is how long it may take to print the stacks of its goroutines.
	dumpLimit = 10 * time.Second
)

// Cluster is a development cluster that runs.
type Cluster struct {
	files    layout
	reporter *progress.Reporter
	// client reaches every part's health endpoint.
	client *http.Client
	guard  *guard

	// mutex guards the state.
	mutex sync.Mutex
	state state
}

// Start starts a cluster and returns when all its parts are ready, the slipstream
// API included if there is to be one. The first call on a machine builds the control
// plane, which takes minutes. When it fails, everything that it started has ended; the
// folder with the logs stays if a part failed to start.
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
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		return nil, errors.Join(err, c.stopAll(cleanup), c.guard.dismiss(cleanup))
	}
	return c, nil
}

// Load returns the cluster that was started in a folder, by this process or another.
func Load(dir string) (*Cluster, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster's folder: %w", err)
	}
	c := &Cluster{files: layout(absolute)}
	if c.state, err = readState(c.files.state()); err != nil {
		return nil, err
	}
	c.client, err = newHealthClient(c.files)
	return c, err
}

// Report sends lines about what the cluster does from now on to a reporter.
func (c *Cluster) Report(reporter *progress.Reporter) {
	c.reporter = reporter
}

// Stop ends every process of the cluster, waits until they are gone, and removes what
// the cluster wrote; the folder too if Start made it. An error says that the server
// had to be killed, that it reported a data race, or that something is left.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ended := endGracefully(ctx, c.servers(nil), syscall.SIGTERM)
	failure := errors.Join(ended, c.noteRights(ctx), c.stopAll(ctx), raceReport(c.files.log(serverPart)))
	for _, path := range c.files.all() {
		failure = errors.Join(failure, os.RemoveAll(path))
	}
	failure = errors.Join(failure, c.guard.dismiss(ctx))
	if c.state.MadeDir {
		failure = errors.Join(failure, os.Remove(string(c.files)))
	}
	return failure
}

// prepare makes the folder and the programs, certificates and ports that the parts
// need.
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
			return fmt.Errorf("making the cluster's folders: %w", err)
		}
	}
	if c.state.Ports, err = choosePorts(ctx, options.Replicas); err != nil {
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

// findPrograms builds the programs that the options do not name.
func (c *Cluster) findPrograms(ctx context.Context) error {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		return err
	}
	c.state.Programs, err = programs.Build(ctx, filepath.Join(root, "hack", "controlplane"), c.reporter)
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
		if options.SupportProgram, err = programs.Product(ctx, root, "hack/dev"); err != nil {
			return err
		}
	}
	if options.Server && options.ServerProgram == "" {
		if options.ServerProgram, err = programs.Product(ctx, root, "cmd/slipstream"); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts the parts in the order in which they need each other.
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

// stopAll ends the processes. The slipstream servers are asked to end, since that is a
// thing to get right; the others have nothing to keep and are killed, the last one
// started first.
func (c *Cluster) stopAll(ctx context.Context) error {
	failure := endGracefully(ctx, c.servers(nil), syscall.SIGTERM)
	for _, running := range slices.Backward(c.state.Processes) {
		failure = errors.Join(failure, running.Stop(ctx, syscall.SIGKILL))
	}
	c.state.Processes = nil
	return failure
}

// endGracefully sends servers one signal to end and fails if one is still there after
// gracefulLimit.
func endGracefully(ctx context.Context, servers []process.Process, signal syscall.Signal) error {
	var failure error
	// All are told before any is waited for, and once: a second signal would make a
	// server give up its graceful end.
	for _, running := range servers {
		failure = errors.Join(failure, running.Signal(signal))
	}
	for _, running := range servers {
		failure = errors.Join(failure, waitEnded(ctx, running))
	}
	return failure
}

// waitEnded waits for the end of a server that was told to end. One that does not is
// made to print the stacks of its goroutines, since they tell what it waits for, and
// its log is kept.
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
		return "", fmt.Errorf("reading the log to be kept: %w", err)
	}
	file, err := os.CreateTemp("", running.Name+"-*.log")
	if err != nil {
		return "", fmt.Errorf("keeping the log: %w", err)
	}
	_, err = file.Write(content)
	return file.Name(), errors.Join(err, file.Close())
}
