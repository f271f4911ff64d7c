// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/serving/installcheck"
)

// checkLimit is the time within which a new installation must work, once its image is pulled.
const checkLimit = 2 * time.Minute

// newCheckCommand returns the command that checks an installation through the kube-apiserver of the server's flags.
func newCheckCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	limit := checkLimit
	command := &cobra.Command{
		Use:   "check",
		Short: "Check through kube-apiserver that an installation does what it should",
		Long: `Asks kube-apiserver, as users do, whether the API is registered and available, whom it trusts to serve it, whether
discovery names every kind, whether objects of each can be listed, whether a replica leads the controllers, and whether
changes are told of. It looks into no object and changes nothing. "helm test" runs it.

Prints one line for each answer, and what to do next about those that are not good. A new installation needs a moment, so it
waits for good answers until --timeout. Exit codes: 0 all is good; 1 something is not; 2 wrong flags.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if limit < 0 {
				return usageError{errors.New("--timeout must not be negative")}
			}
			c, err := newCheckup(opts)
			if err != nil {
				return usageError{err}
			}
			c.Limit, c.Out = limit, command.OutOrStdout()
			return c.Run(ctx)
		},
	}
	command.Flags().DurationVar(&limit, "timeout", limit, "How long to wait for good answers. 0 asks once.")
	for _, name := range []string{"kubeconfig", "namespace"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

func newCheckup(opts *options.Options) (*installcheck.Checker, error) {
	config, err := clusterConfig(opts.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for objects: %w", err)
	}
	return &installcheck.Checker{
		Discovery: discoverer, Dynamic: objects, Namespace: opts.Namespace, Lease: opts.LeaderElection.ResourceName, Clock: clock.RealClock{},
	}, nil
}
