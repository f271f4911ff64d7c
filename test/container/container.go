// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package container runs a program in a container without a container runtime. The program sees only an image's files and the mounted
// volumes, and runs as a user without capabilities. It shares the machine's network, like a Pod with hostNetwork, because the development
// cluster is on loopback. Containers need Linux and root.
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

// Spec describes a container. As in a Pod, it also has /proc, the usual devices, and the machine's /etc/hosts and /etc/resolv.conf.
type Spec struct {
	// Root is the folder with the files of the image. Missing mount points are created in it.
	Root string `json:"root"`
	// ReadOnlyRoot makes everything but the mounts read-only.
	ReadOnlyRoot bool `json:"readOnlyRoot"`
	// Mounts are mounted in this order.
	Mounts []Mount `json:"mounts"`
	// Args are the program, as a path in the container, and its arguments.
	Args []string `json:"args"`
	// Env is the whole environment of the program, as KEY=VALUE.
	Env []string `json:"env"`
	// User and Group are the ids that the program runs as. Groups are the additional groups of a Pod, such as its fsGroup.
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

// CommandName is the command of hack/dev that turns its own process into a container.
const CommandName = "container"

// Command returns the container's process, ready to be started. The program support is hack/dev, which programs.Product builds. The process
// has its own PID namespace, so its child processes end with it. It ends with the thread that started it: a goroutine that is locked to its
// thread must not start a container that outlives it.
func Command(ctx context.Context, support string, spec Spec) (*exec.Cmd, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the container: %w", err)
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
