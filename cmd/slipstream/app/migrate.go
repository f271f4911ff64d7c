// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/migrate"
)

// migrateCommand holds the flags of the command.
type migrateCommand struct {
	options  *options.Options
	storage  *options.StorageOptions
	from, to string
	pad      bool
	replace  bool

	stdout, stderr io.Writer
}

// newMigrateCommand returns the command that migrates between files and etcd, as located by the server's flags.
func newMigrateCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	m := &migrateCommand{options: opts, storage: opts.Storage}
	command := &cobra.Command{
		Use:   "migrate --from bbolt|etcd3 --to etcd3|bbolt --data-dir DIR --etcd-servers URLS",
		Short: "Copy all stored data from files to etcd, or from etcd to files",
		Long: `Copies objects and working state from the files of a data directory to etcd, or from etcd to files. All servers must be
stopped: the files are locked, and a write to etcd by a server fails the migration. Names, uids, labels and contents stay
the same. Resource versions continue above all earlier ones, so every earlier watch must list again. The command reads the
copy again and compares it with the source.

Values are copied without being decrypted, and are encrypted with their whole keys as additional data. So --etcd-prefix must
be the same on both sides, and the servers need the same encryption configuration as before. A configuration that the server
generated is copied too, from encryption.yaml in --data-dir to the Secret slipstream-encryption in --namespace or back. This
requires --kubeconfig, or a Pod with the server's ServiceAccount; otherwise the command prints how to copy the configuration.
A configuration of your own (--encryption-provider-config) is not copied.

The source is not changed. After an interruption run the command again to complete the copy.

With the chart, the value storage.migrate.from runs this command as a Job.

The revision of etcd must not be lower than that of the files, and cannot be set. Either use an etcd that was restored with
"etcdutl snapshot restore --bump-revision N --mark-compacted", or add --pad-revisions.

Exit codes: 0 done and compared; 1 refused or failed, and the command can be run again; 2 wrong flags.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			m.stdout, m.stderr = command.OutOrStdout(), command.ErrOrStderr()
			return m.run(ctx)
		},
	}
	command.Flags().StringVar(&m.from, "from", "", "Current storage backend: bbolt or etcd3.")
	command.Flags().StringVar(&m.to, "to", "", "New storage backend: etcd3 or bbolt.")
	command.Flags().BoolVar(&m.pad, "pad-revisions", false,
		"Raise the revision of etcd if it is too low, with one write to a key for each revision. "+
			"Some thousands per second; history is compacted meanwhile.")
	command.Flags().BoolVar(&m.replace, "replace-target", false,
		"Replace a target with other content. In etcd, keys below the prefix are deleted. Files are kept in a folder before-restore-TIME.")
	for _, name := range []string{
		"data-dir", "etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile",
		"encryption-provider-config", "namespace", "kubeconfig",
	} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

// validate returns an error for invalid flags.
func (m *migrateCommand) validate() error {
	backends := map[string]bool{options.BackendBolt: true, options.BackendEtcd3: true}
	switch {
	case !backends[m.from]:
		return fmt.Errorf("--from=%q must be bbolt or etcd3", m.from)
	case !backends[m.to]:
		return fmt.Errorf("--to=%q must be bbolt or etcd3", m.to)
	case m.from == m.to:
		return fmt.Errorf("--from and --to are both %s and must differ", m.to)
	case len(m.storage.Etcd.StorageConfig.Transport.ServerList) == 0:
		return errors.New("--etcd-servers must name etcd's servers, such as https://10.0.0.1:2379")
	case !filepath.IsAbs(m.storage.DataDir):
		return fmt.Errorf("--data-dir=%q must be an absolute path", m.storage.DataDir)
	case m.pad && m.to != options.BackendEtcd3:
		return errors.New("--pad-revisions has no meaning with --to=bbolt, whose revision can be set; leave it out")
	}
	return nil
}

func (m *migrateCommand) run(ctx context.Context) (err error) {
	if err := m.validate(); err != nil {
		return usageError{err}
	}
	etcd, err := newEtcdClient(ctx, m.storage.Etcd.StorageConfig.Transport)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	if err := checkEtcd(ctx, etcd, m.storage.Etcd.StorageConfig.Prefix); err != nil {
		return err
	}
	if m.from == options.BackendBolt {
		return m.toEtcd(ctx, etcd)
	}
	return m.toFiles(ctx, etcd)
}

func (m *migrateCommand) copying(prefix string) migrate.Options {
	o := migrate.Options{Replace: m.replace, Report: migrate.NewReporter(clock.RealClock{}, m.say)}
	if m.pad {
		o.Pad = prefix + "-padding"
	}
	return o
}

func (m *migrateCommand) say(what string, done, total int64) {
	_, _ = fmt.Fprintf(m.stderr, "%s: %d of %d\n", what, done, total) // Nothing depends on it.
}

func (m *migrateCommand) toEtcd(ctx context.Context, etcd *clientv3.Client) (err error) {
	dir, err := datadir.OpenExisting(ctx, m.storage.DataDir)
	if err != nil {
		return m.explain(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	prefix, err := m.prefixOfFiles(ctx, dir)
	if err != nil {
		return err
	}
	key, err := m.keyToCluster(ctx, dir)
	if err != nil {
		return m.explain(err)
	}
	result, err := migrate.FromDirectory(ctx, dir, etcd, migrate.PrefixesBelow(prefix), m.copying(prefix))
	if err != nil {
		return m.explain(err)
	}
	return m.report(result, fmt.Sprintf("etcd is at revision %d. Start the servers with --storage-backend=etcd3 and --etcd-prefix=%s "+
		`(storage.backend and
storage.etcd.prefix of the chart). Do not start a server on %s again. Its files were not changed.
%s
`, result.Revision, prefix, dir.Path(), key))
}

// prefixOfFiles returns the prefix of the keys in files. A migration cannot change it.
func (m *migrateCommand) prefixOfFiles(ctx context.Context, dir *datadir.Dir) (string, error) {
	configured := m.storage.Etcd.StorageConfig.Prefix
	prefix, err := migrate.PrefixOf(ctx, v1alpha1.GroupName, dir, configured)
	if err == nil && m.storage.PrefixGiven() && prefix != configured {
		err = fmt.Errorf("--etcd-prefix=%s must be %s, here and for the servers (storage.etcd.prefix of the chart): all keys of "+
			"the files in %s have that prefix, and values are encrypted with their whole keys as additional data", configured, prefix, dir.Path())
	}
	return prefix, err
}

func (m *migrateCommand) toFiles(ctx context.Context, etcd *clientv3.Client) (err error) {
	prefix, err := (&stores{etcd: etcd}).prefix(ctx, m.storage)
	if err != nil {
		return err
	}
	dir, err := datadir.Open(ctx, m.storage.DataDir)
	if err != nil {
		return m.explain(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	o := m.copying(prefix)
	key, err := m.keyToFile(ctx, dir, &o)
	if err != nil {
		return m.explain(err)
	}
	result, aside, err := migrate.IntoDirectory(ctx, dir, etcd, migrate.PrefixesBelow(prefix), o, time.Now())
	if err != nil {
		return m.explain(err)
	}
	return m.report(result, fmt.Sprintf(`The files are at revision %d. Start one server with --storage-backend=bbolt (storage.backend of the
chart). Do not start a server on etcd again. etcd was not changed. Replaced files are in %s.
%s
`, result.Revision, aside, key))
}

// report prints what was copied and the next step.
func (m *migrateCommand) report(result migrate.Result, next string) error {
	for _, section := range result.Sections {
		_, err := fmt.Fprintf(m.stdout, "%s: %d keys, %d bytes, the same on both sides, sha256 %x (%d copied now, %d had expired)\n",
			section.Name, section.Keys, section.Bytes, section.Sum, section.Copied, section.Expired)
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(m.stdout, next)
	return err
}

// explain adds the remedy to an error.
func (m *migrateCommand) explain(err error) error {
	advice := map[error]string{
		datadir.ErrInUse:    "stop the server first: end its process, or scale its Deployment to 0 and wait until the Pod has ended",
		datadir.ErrNoStores: "--data-dir must be that of the server; in a Pod, the path where its volume is mounted",
		migrate.ErrTargetNotEmpty: "use another target, or add --replace-target (storage.migrate.replaceTarget of the chart) to replace its " +
			"content",
		migrate.ErrRevisionTooLow: `restore a snapshot of etcd with "etcdutl snapshot restore --bump-revision N --mark-compacted", ` +
			`or add --pad-revisions`,
		migrate.ErrTargetChanged: "stop all servers, and run the command again",
		encryption.ErrOtherKeys:  "keep a copy of it with the snapshots of etcd that need it, delete it, and run the command again",
	}
	for cause, text := range advice {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w; %s", err, text)
		}
	}
	return err
}
