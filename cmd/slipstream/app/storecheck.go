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
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/unreadable"
)

// errDamaged is returned if a check has findings.
var errDamaged = errors.New("the stores are damaged: keep a copy of the data directory as it is, and restore a backup")

// storeCheck holds the flags and the state of the command.
type storeCheck struct {
	storage *options.StorageOptions
	clock   clock.PassiveClock

	stdout, stderr io.Writer
	findings       map[string]*fileFindings
	// unreadable counts the findings about records that cannot be read.
	unreadable int
	said       time.Time
}

// fileFindings are the findings about one file.
type fileFindings struct {
	count int
	lines []string
}

// shownFindings limits the printed findings of a file.
const shownFindings = 1000

// newStoreCheckCommand returns the command that checks the data directory of the server's flags.
func newStoreCheckCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	c := &storeCheck{storage: opts.Storage, clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "check --data-dir DIR",
		Short: "Check the stored files of a running or a stopped server for damage",
		Long: `Checks api.db and work.db: every page of the files is valid, every record can be read, the log has no gap and each of its
records follows from the one before, every key has the value of its last change, and counts and leases match the keys. Then
every value is decrypted and decoded, with encryption.yaml in --data-dir or with --encryption-provider-config. This is
skipped without a key, and for values that a KMS plugin has encrypted.

For a running server the command checks a copy. It creates the copy in the data directory, which needs as much free space as
the files take, and deletes it afterwards.

Prints one line for each finding, at most 1000 for each file, with file, part and key. Exit codes: 0 sound; 1 damaged;
2 wrong flags, or the files could not be checked.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			c.stdout, c.stderr = command.OutOrStdout(), command.ErrOrStderr()
			return c.run(ctx)
		},
	}
	addStorageFlags(command, flags)
	for _, name := range []string{"etcd-prefix", "encryption-provider-config"} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

func (c *storeCheck) run(ctx context.Context) error {
	if err := c.check(ctx); err != nil {
		return usageError{err}
	}
	count := 0
	for _, of := range c.findings {
		count += of.count
	}
	switch {
	case count == 0:
		return nil
	case count == c.unreadable:
		return fmt.Errorf("%d findings: %w: restore a backup, or move them out of the store with %q",
			count, unreadable.ErrUnreadable, unreadable.Command)
	default:
		return fmt.Errorf("%d findings: %w", count, errDamaged)
	}
}

// check checks a copy of the files of a running server, or the files of a stopped one.
func (c *storeCheck) check(ctx context.Context) error {
	if err := requireFiles(c.storage, "use etcdutl hashkv and etcdctl endpoint health"); err != nil {
		return err
	}
	answer, err := adminsocket.NewClient(c.storage.DataDir).Do(ctx, http.MethodGet, backupPath, nil, nil)
	if err == nil {
		return errors.Join(c.checkCopy(ctx, answer), answer.Close())
	}
	if !errors.Is(err, adminsocket.ErrNotRunning) {
		return err
	}
	dir, err := datadir.OpenExisting(ctx, c.storage.DataDir)
	if err != nil {
		return err
	}
	return errors.Join(c.checkFolder(ctx, dir.Path()), dir.Close())
}

// checkCopy checks the stores that a running server sends.
func (c *storeCheck) checkCopy(ctx context.Context, answer io.Reader) (err error) {
	folder, err := os.MkdirTemp(c.storage.DataDir, ".check-") // mode 0700
	if err != nil {
		return fmt.Errorf("creating a folder for the copy: %w", err)
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

// writeNew writes a file that must not exist.
func writeNew(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// checkFolder checks both stores of a folder and the records in them, and prints the findings. If it fails, it prints
// the findings so far and reports nothing as sound.
func (c *storeCheck) checkFolder(ctx context.Context, folder string) (err error) {
	names := []string{datadir.APIFile, datadir.WorkFile}
	defer func() {
		for _, name := range names {
			if err == nil || c.findings[name] != nil {
				err = errors.Join(err, c.print(name))
			}
		}
	}()
	for _, name := range names {
		if err := bolt.Verify(ctx, filepath.Join(folder, name), bolt.Verification{Found: c.found, Checking: c.progress(name)}); err != nil {
			return err
		}
	}
	return c.checkRecords(ctx, folder)
}

// checkRecords decrypts and decodes every record, if the key exists and the files can be opened.
func (c *storeCheck) checkRecords(ctx context.Context, folder string) (err error) {
	stored, err := openStill(ctx, folder)
	if errors.Is(err, bolt.ErrDamaged) || err != nil && len(c.findings) > 0 {
		return nil // The findings include that.
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.close()) }()
	ctx, cancel := context.WithCancel(ctx) // Releases the encrypter and the clients.
	defer cancel()
	encrypter, err := encryption.Try(ctx, filesOrigin(c.storage))
	if errors.Is(err, encryption.ErrAbsent) {
		return c.note("the values were not decrypted, because there is no key: %v", err)
	}
	if err != nil {
		return err
	}
	prefix, err := stored.prefix(ctx, c.storage)
	if err != nil {
		return err
	}
	c.progress("api.db and work.db")("records", 0)
	missing, err := recordsOf(c.storage, encrypter, stored.encrypted(ctx, prefix)).Check(ctx, func(r unreadable.Record) {
		name := datadir.APIFile
		if r.Resource == encryption.WorkResource {
			name = datadir.WorkFile
		}
		c.unreadable++
		c.add(name, fmt.Sprintf("%s: %s: %v", name, r, r.Err))
	})
	for _, key := range missing {
		err = errors.Join(err, c.note("the values that are encrypted with %s were not decrypted: %s lacks that key", key, filesOrigin(c.storage)))
	}
	return err
}

// note prints what was not checked.
func (c *storeCheck) note(format string, arguments ...any) error {
	_, err := fmt.Fprintf(c.stderr, format+"\n", arguments...)
	return err
}

func (c *storeCheck) found(f bolt.Finding) {
	f.File = filepath.Base(f.File)
	c.add(f.File, f.String())
}

// add adds a finding about a file.
func (c *storeCheck) add(name, line string) {
	if c.findings == nil {
		c.findings = map[string]*fileFindings{}
	}
	if c.findings[name] == nil {
		c.findings[name] = &fileFindings{}
	}
	of := c.findings[name]
	of.count++
	if len(of.lines) < shownFindings {
		of.lines = append(of.lines, line)
	}
}

// print prints the findings and the state of a file.
func (c *storeCheck) print(name string) error {
	text := name + ": sound\n"
	if of := c.findings[name]; of != nil {
		text = strings.Join(of.lines, "\n") + "\n"
		if more := of.count - len(of.lines); more > 0 {
			text += fmt.Sprintf("%s: and %d more\n", name, more)
		}
		text += fmt.Sprintf("%s: damaged, %d findings\n", name, of.count)
	}
	_, err := io.WriteString(c.stdout, text)
	return err
}

// progress returns a function that prints each part once when its check begins, and the progress every 2 seconds.
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
