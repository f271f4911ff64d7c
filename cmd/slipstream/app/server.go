// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the command slipstream: it builds a server from options and runs it.
package app

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the leader election and of requests to the cluster
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// NewCommand returns the command slipstream, which serves until ctx is done.
func NewCommand(ctx context.Context) *cobra.Command {
	scheme := apiserver.NewScheme()
	codecs := apiserver.NewCodecs(scheme)
	opts := options.New(codecs)
	command := &cobra.Command{
		Use:   "slipstream",
		Short: "Serve the API of Slipstream and run its controllers",
		Long: `Slipstream serves the kinds of the group configbutler.ai behind the aggregator of a Kubernetes cluster, and keeps
Git branches equal to the live objects that rules select.`,
		Version:      buildversion.WithCommit(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ApplyComponents()
		},
		RunE: func(command *cobra.Command, _ []string) error {
			if err := startLogging(opts, os.Stderr, os.Stdout); err != nil {
				return err
			}
			cliflag.PrintFlags(command.Flags())
			if err := opts.Complete(); err != nil {
				return err
			}
			if err := opts.Validate(); err != nil {
				return err
			}
			return run(ctx, opts, apiserver.NewConfig(scheme, codecs))
		},
	}
	addFlags(command, opts)
	flags := command.Flags()
	addCommands(command,
		newStoreCommand(newRotateKeyCommand(ctx, opts, flags), newStoreCheckCommand(ctx, opts, flags), newStoreDefragCommand(ctx, opts, flags),
			newSetAsideCommand(ctx, opts, flags)),
		newBackupCommand(ctx, opts, flags), newRestoreCommand(ctx, opts, flags), newMigrateCommand(ctx, opts, flags),
		newCheckCommand(ctx, opts, flags))
	return withUsageErrors(command)
}

// startLogging configures the log of the process. Everything in it passes through printable writers.
func startLogging(opts *options.Options, stderr, stdout io.Writer) error {
	streams := &logsapi.LoggingOptions{ErrorStream: logredact.Printable(stderr), InfoStream: logredact.Printable(stdout)}
	return logsapi.ValidateAndApplyWithOptions(opts.Logging, streams, opts.Features)
}

// unwrapped disables line wrapping of the usage text.
const unwrapped = 0

// addFlags registers the flags by subject, and the usage text that groups them.
func addFlags(command *cobra.Command, opts *options.Options) {
	sets := opts.Flags()
	// The options include the flags for logging, which must not be registered twice.
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cliflag.SetUsageAndHelpFunc(command, sets, unwrapped)
}

// run serves until ctx is done. It closes the stores after the last request is completed.
func run(ctx context.Context, opts *options.Options, config *apiserver.Config) (err error) {
	ctx = logredact.WithoutBodies(ctx)
	logger := klog.FromContext(ctx)
	logger.Info("Starting slipstream", "version", buildversion.WithCommit(), "storage", opts.Storage.Backend)
	stores, err := openStores(ctx, opts.Storage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server, err := assemble(lifetime, opts, config, stores)
	if err != nil {
		return err
	}
	serving, restart := context.WithCancelCause(ctx)
	defer restart(nil)
	restartWhenServed := func(ctx context.Context) {
		if opts.Unserved.WaitUntilServed(ctx) {
			restart(errRestart)
		}
	}
	if err := server.AddBackground("wait-for-types-that-are-off", restartWhenServed); err != nil {
		return err
	}
	closeSocket := stores.serveCommands(ctx, opts.Storage, func() { restart(errRestart) })
	defer func() { err = errors.Join(err, closeSocket()) }()
	if err := server.Run(serving); err != nil {
		return err
	}
	if errors.Is(context.Cause(serving), errRestart) {
		return errRestart
	}
	return nil
}
