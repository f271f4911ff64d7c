// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/devcluster/progress"
)

// signals are the signals that stop-server can send, by name.
var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM,
	"INT":  syscall.SIGINT,
	"QUIT": syscall.SIGQUIT,
	"KILL": syscall.SIGKILL,
}

func newUpCommand() *cobra.Command {
	options := devcluster.Options{Detached: true}
	var storage string
	command := &cobra.Command{
		Use:   "up --dir DIR [-- SERVER_ARGS...]",
		Short: "Start a cluster in a folder and leave it running",
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Storage = devcluster.Storage(storage)
			options.ServerArgs = arguments
			options.Progress = command.ErrOrStderr()
			var err error
			if options.ServerProgram, err = filepath.Abs(options.ServerProgram); err != nil {
				return err
			}
			if options.SupportProgram, err = os.Executable(); err != nil {
				return err
			}
			cluster, err := devcluster.Start(command.Context(), options)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), strings.Join(cluster.Environ(), "\n"))
			return err
		},
	}
	addDirFlag(command, &options.Dir)
	command.Flags().BoolVar(&options.Server, "server", true, "also start the slipstream server")
	command.Flags().StringVar(&options.ServerProgram, "server-program", "bin/slipstream", "path of the slipstream server")
	command.Flags().StringVar(&storage, "storage", string(devcluster.StorageBbolt), "storage backend of the server: bbolt or etcd3")
	command.Flags().BoolVar(&options.Audit, "audit", true, "make kube-apiserver send audit events of changes to the server")
	command.Flags().BoolVar(&options.Admission, "admission", true, "make kube-apiserver send admission reviews of changes to the server")
	command.Flags().BoolVar(&options.Pods, "pods", false, "run Pods with kube-scheduler and kwok")
	command.Flags().IntVar(&options.Replicas, "replicas", 1, "number of servers; more than one needs etcd3")
	return command
}

func newDownCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop a cluster's processes and remove its files",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := load(command, dir)
			if errors.Is(err, fs.ErrNotExist) {
				_, err = fmt.Fprintln(command.ErrOrStderr(), "nothing to stop:", err)
				return err
			}
			if err != nil {
				return err
			}
			return cluster.Stop(command.Context())
		},
	}
	addDirFlag(command, &dir)
	return command
}

func newUserCommand() *cobra.Command {
	var dir, name string
	var groups []string
	command := &cobra.Command{
		Use:   "user --dir DIR --name NAME [--groups A,B]",
		Short: "Print the kubeconfig of an ordinary user",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := load(command, dir)
			if err != nil {
				return err
			}
			kubeconfig, err := cluster.User(name, groups...)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(string(kubeconfig))
			if err != nil {
				return fmt.Errorf("failed to read the kubeconfig: %w", err)
			}
			_, err = command.OutOrStdout().Write(content)
			return err
		},
	}
	addDirFlag(command, &dir)
	command.Flags().StringVar(&name, "name", "", "name of the user")
	command.Flags().StringSliceVar(&groups, "groups", nil, "groups of the user")
	mustRequire(command, "name")
	return command
}

func newStopServerCommand() *cobra.Command {
	var dir, signal string
	command := &cobra.Command{
		Use:   "stop-server --dir DIR [--signal TERM|INT|QUIT|KILL]",
		Short: "Stop the slipstream server and keep its data",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			number, known := signals[strings.TrimPrefix(signal, "SIG")]
			if !known {
				return fmt.Errorf("--signal=%q must be TERM, INT, QUIT or KILL", signal)
			}
			cluster, err := load(command, dir)
			if err != nil {
				return err
			}
			return cluster.StopServer(command.Context(), number)
		},
	}
	addDirFlag(command, &dir)
	command.Flags().StringVar(&signal, "signal", "TERM", "signal that stops the server")
	return command
}

func newStartServerCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "start-server --dir DIR",
		Short: "Start the slipstream server with its data",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := load(command, dir)
			if err != nil {
				return err
			}
			return cluster.StartServer(command.Context())
		},
	}
	addDirFlag(command, &dir)
	return command
}

func newGuardCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:    "guard --dir DIR",
		Short:  "Stop a cluster when the input ends",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := io.Copy(io.Discard, command.InOrStdin()); err != nil {
				return fmt.Errorf("failed to read the input: %w", err)
			}
			cluster, err := load(command, dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return cluster.Stop(command.Context())
		},
	}
	addDirFlag(command, &dir)
	return command
}

func newControlPlaneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "control-plane",
		Short: "Build the control plane's programs if necessary, and print their folder",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			root, err := programs.ModuleRoot(".")
			if err != nil {
				return err
			}
			set, err := programs.Build(command.Context(), programs.ControlPlaneModule(root), progress.NewReporter(command.ErrOrStderr()))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), filepath.Dir(set.Kubectl))
			return err
		},
	}
}

// load returns the cluster in a folder. It logs to the command's standard error.
func load(command *cobra.Command, dir string) (*devcluster.Cluster, error) {
	cluster, err := devcluster.Load(dir)
	if err != nil {
		return nil, err
	}
	cluster.Report(progress.NewReporter(command.ErrOrStderr()))
	return cluster, nil
}

// addDirFlag adds the required flag for the folder of a cluster.
func addDirFlag(command *cobra.Command, dir *string) {
	command.Flags().StringVar(dir, "dir", "", "folder of the cluster")
	mustRequire(command, "dir")
}

// mustRequire makes a flag that was just added required.
func mustRequire(command *cobra.Command, flag string) {
	if err := command.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}
