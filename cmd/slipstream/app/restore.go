// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

const (
	// restorePath is the path of the command on the admin socket, which reads the backup as its input.
	restorePath = "/restore"
	// unreadableParameter allows rows that cannot be decrypted.
	unreadableParameter = "allow-unreadable"
)

// restoreCommand holds the flags of the command.
type restoreCommand struct {
	storage         *options.StorageOptions
	allowUnreadable bool

	stdin          io.Reader
	stdout, stderr io.Writer
}

// newRestoreCommand returns the command that restores the data directory of the server's flags.
func newRestoreCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	r := &restoreCommand{storage: opts.Storage}
	command := &cobra.Command{
		Use:   "restore --data-dir DIR FILE",
		Short: "Replace the stored data with a backup",
		Long: `Verifies the whole backup and replaces the stores in the data directory with those of the backup. The replaced files are
kept in a folder before-restore-TIME in the data directory. Objects are restored as they were. Resource versions continue
above all earlier ones, so every earlier watch must list again.

A backup that the server could not read is refused before anything is changed: the encryption configuration that the server
will have must decrypt every row. That is the file of --encryption-provider-config if the server has this flag: use the same
flag here if the server is stopped; a running server uses its own. Otherwise it is the encryption.yaml in the backup if it
was made --with-encryption-key, or else the one in --data-dir.

A server that runs on the data directory receives the backup and exits with code 75. Its supervisor starts it again on the
restored data. Without a supervisor, start it yourself.

In a Pod: kubectl exec -i POD -- /slipstream restore - < slipstream.tar

FILE can be - for standard input. Exit codes: 0 done; 1 failed, and nothing was changed; 2 wrong flags or arguments;
3 the restore is committed, and the next start of the server or the next restore finishes it.`,
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(command *cobra.Command, args []string) error {
			r.stdin, r.stdout, r.stderr = command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr()
			return r.run(ctx, args[0])
		},
	}
	command.Flags().BoolVar(&r.allowUnreadable, unreadableParameter, false,
		"Restore although some rows cannot be decrypted because their key is lost. The server must be able to start with the keys that it has.")
	addStorageFlags(command, flags)
	for _, name := range []string{"etcd-prefix", "encryption-provider-config"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

func (r *restoreCommand) run(ctx context.Context, name string) (err error) {
	if err := requireFiles(r.storage, insteadOfBackup); err != nil {
		return err
	}
	source, total := r.stdin, int64(0)
	if name != stream {
		file, openErr := os.Open(name)
		if openErr != nil {
			return fmt.Errorf("opening the backup: %w; in a Pod, use \"restore -\" with kubectl exec -i, and redirect the file to it", openErr)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		info, statErr := file.Stat()
		if statErr != nil {
			return fmt.Errorf("opening the backup: %w", statErr)
		}
		source, total = file, info.Size()
	}
	return r.restore(ctx, newProgress(source, r.stderr, "restoring", total, clock.RealClock{}))
}

// restore sends the backup to the running server, or replaces the files of a stopped one.
func (r *restoreCommand) restore(ctx context.Context, source io.Reader) error {
	query := url.Values{}
	if r.allowUnreadable {
		query.Set(unreadableParameter, "true")
	}
	answer, err := adminsocket.NewClient(r.storage.DataDir).Do(ctx, http.MethodPost, restorePath, query, source)
	if err == nil {
		_, copyErr := io.Copy(r.stdout, answer)
		return errors.Join(copyErr, answer.Close())
	}
	if !errors.Is(err, adminsocket.ErrNotRunning) {
		return err
	}
	return r.restoreStopped(ctx, source)
}

func (r *restoreCommand) restoreStopped(ctx context.Context, source io.Reader) (err error) {
	dir, err := datadir.Open(ctx, r.storage.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	check := keyCheck{storage: r.storage, allowUnreadable: r.allowUnreadable}
	staged, err := backup.RestoreDirectory(ctx, dir, backup.Target{KeyFile: encryption.FileName, Check: check.run}, source, time.Now())
	if err != nil {
		return err
	}
	return reportRestore(r.stdout, staged, "start the server")
}

// reportRestore prints what was restored and the next step.
func reportRestore(w io.Writer, staged backup.Staged, next string) error {
	_, err := fmt.Fprintf(w, "restored the backup of %s, revision %d; the replaced files are kept in %s; %s\n",
		staged.Created.Format(time.RFC3339), staged.Stores[0].Revision, staged.Aside, next)
	return err
}

// serveRestore stages a backup to replace the open stores and restarts the server. Only one restore runs at a time, and
// none after one was committed.
func (s *stores) serveRestore(storage *options.StorageOptions, restart func()) adminsocket.Handler {
	var running sync.Mutex
	return func(answer io.Writer, request *http.Request) error {
		if !running.TryLock() {
			return errors.New("another restore is running")
		}
		defer running.Unlock()
		ctx := request.Context()
		check := keyCheck{storage: storage, allowUnreadable: request.URL.Query().Get(unreadableParameter) == "true"}
		target := backup.Target{Dir: s.dir.Path(), KeyFile: encryption.FileName, Replaced: s.states, Check: check.run}
		staged, err := backup.Stage(ctx, target, request.Body, time.Now())
		if err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Shutting down to restart on a restored backup", "created", staged.Created, "before", staged.Aside)
		defer restart()
		return reportRestore(answer, staged, "the server ends now, and its supervisor starts it on the restored data")
	}
}
