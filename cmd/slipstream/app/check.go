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
		Short: "Check an installation through kube-apiserver",
		Long: `Sends requests to kube-apiserver, as users do, and checks whether the API is registered and available, which authorities
kube-apiserver trusts for it, whether discovery has every kind, whether the objects of each kind can be listed, whether a
replica leads the controllers, and whether kube-apiserver reports changes to the server. The command does not examine the
content of objects and changes nothing. "helm test" runs it.

Prints one line for each check, and the next step for each check that fails. A failed check is repeated until --timeout,
because a new installation needs some time. Exit codes: 0 all checks succeeded; 1 a check failed; 2 wrong flags.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if limit < 0 {
				return usageError{errors.New("--timeout must not be negative")}
			}
			c, err := newChecker(opts)
			if err != nil {
				return usageError{err}
			}
			c.Limit, c.Out = limit, command.OutOrStdout()
			return c.Run(ctx)
		},
	}
	command.Flags().DurationVar(&limit, "timeout", limit, "How long failed checks are repeated. 0 runs each check once.")
	for _, name := range []string{"kubeconfig", "namespace"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

func newChecker(opts *options.Options) (*installcheck.Checker, error) {
	config, err := clusterConfig(opts.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for discovery: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for objects: %w", err)
	}
	return &installcheck.Checker{
		Discovery: discoverer, Dynamic: objects, Namespace: opts.Namespace, Lease: opts.LeaderElection.ResourceName, Clock: clock.RealClock{},
	}, nil
}
