// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

const (
	// backupPath is the path of the command on the admin socket.
	backupPath = "/backup"
	// keyParameter includes the encryption key.
	keyParameter = "encryption-key"
)

// stream is the file name that means standard input or output.
const stream = "-"

// backupCommand holds the flags of the command.
type backupCommand struct {
	storage *options.StorageOptions
	output  string
	withKey bool
	force   bool

	stdout, stderr io.Writer
}

// newBackupCommand returns the command that backs up the data directory of the server's flags.
func newBackupCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	b := &backupCommand{storage: opts.Storage}
	command := &cobra.Command{
		Use:   "backup --data-dir DIR -o FILE",
		Short: "Back up the stored data of a running or a stopped server",
		Long: `Writes a backup of all stored data, as of one point in time. A server that runs on the data directory continues to serve
and to write. The backup is a tar archive with a manifest and checksums, which "slipstream restore" verifies first.

In a Pod: kubectl exec POD -- /slipstream backup -o - > slipstream.tar

Exit codes: 0 done; 1 failed, and no file was written; 2 wrong flags.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			b.stdout, b.stderr = command.OutOrStdout(), command.ErrOrStderr()
			return b.run(ctx)
		},
	}
	command.Flags().StringVarP(&b.output, "output", "o", "", "File to write, or - for standard output.")
	command.Flags().BoolVar(&b.withKey, "with-encryption-key", false,
		"Include "+encryption.FileName+", without which the backup cannot be read. With it, anyone who has the backup can read all data.")
	command.Flags().BoolVar(&b.force, "force", false, "Replace the file if it exists.")
	addStorageFlags(command, flags)
	return withUsageErrors(command)
}

// addStorageFlags adds the server's flags that locate the data directory to a command.
func addStorageFlags(command *cobra.Command, flags *pflag.FlagSet) {
	for _, name := range []string{"storage-backend", "data-dir"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
}

// insteadOfBackup is how to back up and restore etcd.
const insteadOfBackup = "use etcdctl snapshot save, and etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted"

// requireFiles rejects storage that is not in files. instead is what to do with etcd.
func requireFiles(storage *options.StorageOptions, instead string) error {
	switch storage.Backend {
	case options.BackendBolt:
		return nil
	case options.BackendEtcd3:
		return usageError{fmt.Errorf("--storage-backend=etcd3 stores all data in etcd, not in files: %s", instead)}
	}
	return usageError{storage.UnknownBackend()}
}

func (b *backupCommand) run(ctx context.Context) error {
	if err := requireFiles(b.storage, insteadOfBackup); err != nil {
		return err
	}
	if b.output == "" {
		return usageError{errors.New("--output (-o) must name a file, or be - for standard output")}
	}
	if b.output == stream {
		m, err := b.copyTo(ctx, b.stdout)
		if err != nil {
			return err
		}
		return b.report(m)
	}
	return b.writeFile(ctx)
}

// writeFile writes the backup under a temporary name and renames it once it is complete and synced.
func (b *backupCommand) writeFile(ctx context.Context) (err error) {
	if _, err := os.Lstat(b.output); !errors.Is(err, fs.ErrNotExist) && !b.force {
		return errors.Join(fmt.Errorf("%s already exists: use another file, or add --force to replace it", b.output), err)
	}
	file, err := os.CreateTemp(filepath.Dir(b.output), "."+filepath.Base(b.output)+".*") // mode 0600
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("writing the backup: %w; in a Pod, use --output=- and redirect the output of kubectl exec", err)
	}
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	m, err := b.copyTo(ctx, file)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := b.place(file.Name()); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return b.report(m)
}

// place renames the finished file. It does not replace a file that was created meanwhile, unless that is allowed.
func (b *backupCommand) place(temporary string) error {
	if b.force {
		return os.Rename(temporary, b.output)
	}
	if err := os.Link(temporary, b.output); err != nil {
		return err
	}
	return os.Remove(temporary)
}

// copyTo writes the backup and verifies it while reading.
func (b *backupCommand) copyTo(ctx context.Context, w io.Writer) (archive.Manifest, error) {
	source, err := b.open(ctx)
	if err != nil {
		return archive.Manifest{}, err
	}
	watched := newProgress(source, b.stderr, "backing up", 0, clock.RealClock{})
	m, err := archive.Read(io.TeeReader(watched, w),
		func(m archive.Manifest) error { watched.total = m.Size(); return nil },
		func(archive.File, io.Reader) error { return nil })
	if err = errors.Join(err, source.Close()); err != nil {
		return m, fmt.Errorf("backing up %s: %w", b.storage.DataDir, err)
	}
	return m, nil
}

// open requests a backup from the running server, or creates one from the files of a stopped server.
func (b *backupCommand) open(ctx context.Context) (io.ReadCloser, error) {
	query := url.Values{}
	if b.withKey {
		query.Set(keyParameter, "true")
	}
	answer, err := adminsocket.NewClient(b.storage.DataDir).Do(ctx, http.MethodGet, backupPath, query, nil)
	if !errors.Is(err, adminsocket.ErrNotRunning) {
		return answer, err
	}
	dir, err := datadir.OpenExisting(ctx, b.storage.DataDir)
	if errors.Is(err, datadir.ErrNoStores) {
		return nil, fmt.Errorf("%w; --data-dir must be that of the server (with --storage-backend=etcd3 use etcdctl snapshot save)", err)
	}
	if err != nil {
		return nil, err
	}
	ours, theirs := io.Pipe()
	go func() {
		err := backup.WriteDirectory(ctx, dir, theirs, backupOptions(dir, b.withKey))
		_ = theirs.CloseWithError(errors.Join(err, dir.Close())) // Never fails.
	}()
	return ours, nil
}

// report prints what was backed up, and what to do if the key is not in the backup.
func (b *backupCommand) report(m archive.Manifest) error {
	text := fmt.Sprintf("backed up %s at revision %d of its objects, %d MiB\n", b.storage.DataDir, m.Stores[0].Revision, m.Size()/mebibyte)
	if !b.withKey {
		text += "the encryption key is not in the backup, and the backup cannot be read without it: keep a copy of " +
			filepath.Join(b.storage.DataDir, encryption.FileName) + " elsewhere; in a Pod, from which the file cannot be copied, make another " +
			"backup --with-encryption-key and extract " + encryption.FileName + " from it\n"
	}
	_, err := io.WriteString(b.stderr, text)
	return err
}

// backupOptions returns the options of a new backup.
func backupOptions(dir *datadir.Dir, withKey bool) backup.Options {
	options := backup.Options{Version: buildversion.WithCommit(), Now: time.Now()}
	if withKey {
		options.KeyFile = dir.File(encryption.FileName)
	}
	return options
}

// serveBackup backs up the open stores.
func (s *stores) serveBackup(answer io.Writer, request *http.Request) error {
	return backup.Write(answer, s.engines(), backupOptions(s.dir, request.URL.Query().Get(keyParameter) == "true"))
}
