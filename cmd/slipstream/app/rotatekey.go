// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// newRotateKeyCommand returns the command that changes the server's own encryption configuration, as located by the
// server's flags. A running server reloads it.
func newRotateKeyCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	command := &cobra.Command{
		Use:   "rotate-key",
		Short: "Encrypt the stored data with a new key",
		Long: `Adds a new key to the encryption configuration that the server generated: the file encryption.yaml in --data-dir, or with
--storage-backend=etcd3 the Secret slipstream-encryption in --namespace. A running server loads the key within 10 seconds.
With etcd3 it encrypts with the key after another minute, when every replica can decrypt with it. The server then encrypts
all stored data again that is encrypted with older keys, and removes these keys when no data needs them any more, after 15
minutes or more. A stopped server does so when it starts. No server has to be stopped. Keep a copy of the new configuration,
and keep the previous one with older backups.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			home, err := newHome(opts)
			if err != nil {
				return err
			}
			key, err := encryption.Rotate(ctx, home)
			if errors.Is(err, encryption.ErrAbsent) {
				return fmt.Errorf("%w: check --data-dir, --storage-backend and --namespace", err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "key %s added to %s\n", key, home)
			return err
		},
	}
	for _, name := range []string{"storage-backend", "data-dir", "namespace", "kubeconfig"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}
