// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// newStoreDefragCommand returns the command that defragments the files in the data directory of the server's flags.
func newStoreDefragCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	command := &cobra.Command{
		Use:   "defrag --data-dir DIR",
		Short: "Return unused space in the stored files of a stopped server to the disk",
		Long: `The files grow and do not shrink by themselves: freed space is reused. This command copies the content of api.db and
work.db to new files, compares and syncs them, and replaces the old files with them. Until then the old files remain, even
after a crash, a full disk or Ctrl-C. The command needs as much free space as the content takes. The server must be stopped.

Prints the sizes before and after. Exit codes: 0 done; 1 failed, and each file is the old one or the new one with
the same content; 2 wrong flags.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return defragment(ctx, opts.Storage, command.OutOrStdout())
		},
	}
	addStorageFlags(command, flags)
	return withUsageErrors(command)
}

func defragment(ctx context.Context, storage *options.StorageOptions, out io.Writer) (err error) {
	if err := requireFiles(storage, "use etcdctl defrag"); err != nil {
		return err
	}
	dir, err := datadir.OpenExisting(ctx, storage.DataDir)
	if errors.Is(err, datadir.ErrInUse) {
		return fmt.Errorf("%w; stop the server first", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		sizes, err := bolt.Defragment(ctx, dir.File(name))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s: %d bytes before, %d after\n", name, sizes.Before, sizes.After); err != nil {
			return err
		}
	}
	return nil
}
