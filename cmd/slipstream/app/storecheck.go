// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/control"
	"github.com/configbutler/slipstream/pkg/storage/archive"
	"github.com/configbutler/slipstream/pkg/storage/bolt"
	"github.com/configbutler/slipstream/pkg/storage/datadir"
)

// errDamaged says that a check found something.
var errDamaged = errors.New("the stores are damaged: keep a copy of the data directory as it is, and restore a backup")

// storeCheck is what a check is asked for.
type storeCheck struct {
	storage *options.StorageOptions
	clock   clock.PassiveClock

	stdout, stderr io.Writer
	findings       int
	said           time.Time
}

// newStoreCheckCommand checks the files of a data directory, of which the server's flags say where it is.
func newStoreCheckCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	c := &storeCheck{storage: opts.Storage, clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "check --data-dir DIR",
		Short: "Check that the stored files are sound, of a running server or of a stopped one",
		Long: `Checks api.db and work.db: that every page of the files is what it should be, that every record can be read, that the
log is without a gap and each of its records goes on from the one before, that every key holds what its last change left
there, and that counts and leases agree with the keys. Nothing is decrypted, so no key is needed.

Of a running server a copy is checked, which is made in the data directory and removed: as much space must be free there
as the files take.

Prints one line for each finding, with file, part and key. Exit codes: 0 sound; 1 damaged; 2 wrong flags, or it could not
be checked.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			c.stdout, c.stderr = command.OutOrStdout(), command.ErrOrStderr()
			return c.run(ctx)
		},
	}
	addStorageFlags(command, flags)
	return withUsageErrors(command)
}

func (c *storeCheck) run(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return usageError{err}
	}
	if c.findings > 0 {
		return fmt.Errorf("%d findings: %w", c.findings, errDamaged)
	}
	return nil
}

// check checks a copy of the files that a running server has open, or the files of a stopped one.
func (c *storeCheck) check(ctx context.Context) error {
	if err := checkFilesOf(c.storage, "etcd checks itself: use etcdutl hashkv and etcdctl endpoint health"); err != nil {
		return err
	}
	answer, err := control.NewClient(c.storage.DataDir).Do(ctx, http.MethodGet, backupPath, nil, nil)
	if err == nil {
		return errors.Join(c.checkCopy(ctx, answer), answer.Close())
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	dir, err := datadir.OpenExisting(ctx, c.storage.DataDir)
	if err != nil {
		return err
	}
	return errors.Join(c.checkFolder(ctx, dir.Path()), dir.Close())
}

// checkFilesOf refuses storage that is not in files, with what to do instead.
func checkFilesOf(storage *options.StorageOptions, instead string) error {
	if storage.Backend == options.BackendBolt {
		return nil
	}
	return usageError{fmt.Errorf("--storage-backend=%q must be bbolt; %s", storage.Backend, instead)}
}

// checkCopy checks the stores that a running server sends.
func (c *storeCheck) checkCopy(ctx context.Context, answer io.Reader) (err error) {
	folder, err := os.MkdirTemp(c.storage.DataDir, ".check-") // mode 0700
	if err != nil {
		return fmt.Errorf("making a folder for the copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	source := newProgress(answer, c.stderr, "copying", 0, c.clock)
	begin := func(m archive.Manifest) error { source.total = m.Size(); return nil }
	if _, err := archive.Read(source, begin, func(file archive.File, content io.Reader) error {
		return writeNew(filepath.Join(folder, file.Name), content)
	}); err != nil {
		return fmt.Errorf("copying the stores of the running server: %w", err)
	}
	return c.checkFolder(ctx, folder)
}

// writeNew writes a file that is not there yet.
func writeNew(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// checkFolder checks both stores of a folder and prints how they are.
func (c *storeCheck) checkFolder(ctx context.Context, folder string) error {
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		before := c.findings
		if err := bolt.Verify(ctx, filepath.Join(folder, name), bolt.Verification{Found: c.found, Checking: c.progress(name)}); err != nil {
			return err
		}
		result := "sound"
		if found := c.findings - before; found > 0 {
			result = fmt.Sprintf("damaged, %d findings", found)
		}
		if _, err := fmt.Fprintf(c.stdout, "%s: %s\n", name, result); err != nil {
			return err
		}
	}
	return nil
}

func (c *storeCheck) found(f bolt.Finding) {
	c.findings++
	f.File = filepath.Base(f.File)
	_, _ = fmt.Fprintln(c.stdout, f) // The exit code tells it as well.
}

// progress says what is being checked: each part once, and how far it is every 2 seconds.
func (c *storeCheck) progress(name string) func(what string, done int64) {
	current := ""
	return func(what string, done int64) {
		now := c.clock.Now()
		if what == current && now.Sub(c.said) < progressInterval {
			return
		}
		text := fmt.Sprintf("%s: checking %s", name, what)
		if what == current {
			text += fmt.Sprintf(", %d so far", done)
		}
		current, c.said = what, now
		_, _ = fmt.Fprintln(c.stderr, text) // Nothing depends on it.
	}
}
