// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/container"
)

// logEnd is the size of the shown end of a log, in bytes.
const logEnd = 6000

// notStarted is the exit code of a container that could not be started.
const notStarted = 128

// runContainer runs the container once and returns its terminated state.
func (p *pod) runContainer(ctx context.Context, restarts int32) *corev1.ContainerStateTerminated {
	status := containerStatus{restarts: restarts}
	begun := metav1.Now()
	command, err := p.startContainer(ctx)
	if err != nil {
		p.logf("%v", err)
		status.terminated = &corev1.ContainerStateTerminated{
			ExitCode: notStarted, Reason: "ContainerCannotRun", Message: err.Error(), StartedAt: begun, FinishedAt: metav1.Now(),
		}
	} else {
		status.running = &corev1.ContainerStateRunning{StartedAt: begun}
		p.report(ctx, status)
		p.supervise(ctx, command, status)
		status.running = nil
		status.terminated = p.terminatedState(command, begun)
	}
	p.logf("container exited with code %d", status.terminated.ExitCode)
	p.report(ctx, status)
	return status.terminated
}

// supervise probes the container, and stops it if necessary, until it has ended.
func (p *pod) supervise(ctx context.Context, command *exec.Cmd, status containerStatus) {
	probing, stop := context.WithCancel(ctx)
	defer stop()
	found := make(chan health)
	go (&prober{network: p.network, container: &p.object.Spec.Containers[0], found: found}).run(probing)
	ended := make(chan struct{})
	go func() {
		// The exit code is in the process's state.
		_ = command.Wait()
		close(ended)
	}()
	deleted, kill := p.deleted, make(<-chan time.Time)
	for {
		select {
		case <-ended:
			return
		case now := <-found:
			if now.failure != nil {
				p.logf("%v", now.failure)
				p.terminate(command)
				kill = time.After(time.Duration(*p.object.Spec.TerminationGracePeriodSeconds) * time.Second)
			} else if now.ready != status.ready {
				status.ready = now.ready
				p.report(ctx, status)
			}
		case <-deleted:
			deleted = nil
			p.terminate(command)
			kill = time.After(p.grace)
		case <-kill:
			p.logf("killed the container: it did not stop within the grace period")
			if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				p.logf("%v", err)
			}
		}
	}
}

func (p *pod) terminate(command *exec.Cmd) {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.logf("%v", err)
	}
}

// terminatedState returns the state of a container that has ended. The message is the end of the log if the container failed.
func (p *pod) terminatedState(command *exec.Cmd, begun metav1.Time) *corev1.ContainerStateTerminated {
	end := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: begun, FinishedAt: metav1.Now()}
	state, ok := command.ProcessState.Sys().(syscall.WaitStatus)
	if ok && state.Signaled() {
		end.Signal = int32(state.Signal())
		end.ExitCode = notStarted + end.Signal
	} else {
		end.ExitCode = int32(command.ProcessState.ExitCode())
	}
	if end.ExitCode != 0 {
		content, err := os.ReadFile(p.log)
		if err != nil {
			content = []byte(err.Error())
		}
		end.Reason, end.Message = "Error", string(content[max(0, len(content)-logEnd/2):])
	}
	return end
}

// startContainer starts the container's process.
func (p *pod) startContainer(ctx context.Context) (*exec.Cmd, error) {
	spec, err := p.containerSpec(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to prepare the container: %w", err)
	}
	command, err := container.Command(ctx, p.node.options.Support, *spec)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to open the container's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := start(p.network, command); err != nil {
		return nil, fmt.Errorf("failed to start the container: %w", err)
	}
	return command, nil
}

// containerSpec returns the spec of the Pod's container.
func (p *pod) containerSpec(ctx context.Context) (*container.Spec, error) {
	wanted := &p.object.Spec.Containers[0]
	image, known := p.node.options.Images[wanted.Image]
	if !known {
		return nil, fmt.Errorf("image %s not found", wanted.Image)
	}
	mounts, err := p.volumes.mounts(ctx, wanted.VolumeMounts)
	if err != nil {
		return nil, err
	}
	environment, err := newEnvironment(ctx, p.node.client, p.object, wanted, p.node.apiServer)
	if err != nil {
		return nil, err
	}
	hosts, err := p.hosts()
	if err != nil {
		return nil, err
	}
	spec := &container.Spec{Root: image.Root, Mounts: append(mounts, hosts), Env: environment.lines()}
	command := wanted.Command
	if len(command) == 0 {
		command = image.Entrypoint
	}
	for _, argument := range append(append([]string{}, command...), wanted.Args...) {
		spec.Args = append(spec.Args, environment.expand(argument))
	}
	return spec, p.secure(spec, wanted.SecurityContext)
}

// hosts writes the hosts file of the Pod. It has the one name that cluster DNS resolves for all Pods.
func (p *pod) hosts() (container.Mount, error) {
	path := filepath.Join(p.volumes.folder, "hosts")
	content := loopback + " localhost\n" + p.node.apiServer + " kubernetes.default.svc\n"
	if err := os.MkdirAll(p.volumes.folder, 0o755); err != nil {
		return container.Mount{}, err
	}
	return container.Mount{HostPath: path, Path: "/etc/hosts", ReadOnly: true}, os.WriteFile(path, []byte(content), 0o644)
}

// secure sets the user of the container. Containers of this node have no capabilities, whatever a Pod requests,
// so a Pod that needs one does not run.
func (p *pod) secure(spec *container.Spec, own *corev1.SecurityContext) error {
	general := p.object.Spec.SecurityContext
	if general == nil || general.RunAsUser == nil || general.RunAsGroup == nil {
		return errors.New("runAsUser is required")
	}
	spec.User, spec.Group = int(*general.RunAsUser), int(*general.RunAsGroup)
	if general.FSGroup != nil {
		spec.Groups = append(spec.Groups, int(*general.FSGroup))
	}
	for _, group := range general.SupplementalGroups {
		spec.Groups = append(spec.Groups, int(group))
	}
	spec.ReadOnlyRoot = own != nil && own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem
	return nil
}
