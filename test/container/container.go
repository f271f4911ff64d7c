// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package container answers how a program runs in a container without a container runtime: it sees an image's files, the
// volumes that are mounted and nothing else, as a user without any capability. It shares the machine's network, as a pod of
// the host's network does, because the development cluster is on loopback. Containers need Linux and root.
package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
)

// Spec says what runs, and what it sees. As in a pod, /proc, the usual devices and the machine's /etc/hosts and
// /etc/resolv.conf are there without being named.
type Spec struct {
	// Root is the folder with the files of the image. Mount points that are missing are made in it.
	Root string `json:"root"`
	// ReadOnlyRoot keeps everything but the mounts from being written.
	ReadOnlyRoot bool `json:"readOnlyRoot"`
	// Mounts are put in place in their order.
	Mounts []Mount `json:"mounts"`
	// Args are the program, as a path in the container, and its arguments.
	Args []string `json:"args"`
	// Env are KEY=VALUE lines: all that the program gets.
	Env []string `json:"env"`
	// User and Group are the ids that the program runs as, Groups the further groups of a pod, such as its fsGroup.
	User   int   `json:"user"`
	Group  int   `json:"group"`
	Groups []int `json:"groups"`
}

// Mount shows a file or a folder of the machine in the container.
type Mount struct {
	HostPath string `json:"hostPath"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly"`
}

// CommandName is the command of hack/dev that makes a container of the process in which it runs.
const CommandName = "container"

// Command returns the container's process, ready to be started. The program support is hack/dev, which
// programs.Product builds. The process has ids of processes of its own, so all that it started ends with it, and it ends
// with the thread that started it at the latest: whoever wants it to outlive a goroutine must not lock that to its thread.
func Command(ctx context.Context, support string, spec Spec) (*exec.Cmd, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the container: %w", err)
	}
	command := exec.CommandContext(ctx, support, CommandName, string(encoded))
	isolate(command)
	return command, nil
}

func (s Spec) validate() error {
	if !filepath.IsAbs(s.Root) {
		return fmt.Errorf("root %q of a container: want an absolute path", s.Root)
	}
	if len(s.Args) == 0 || !path.IsAbs(s.Args[0]) {
		return errors.New("a container needs the absolute path of a program")
	}
	for _, mount := range s.Mounts {
		if !filepath.IsAbs(mount.HostPath) || !path.IsAbs(mount.Path) {
			return fmt.Errorf("mount of %q at %q: want absolute paths", mount.HostPath, mount.Path)
		}
	}
	return nil
}
