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
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/unreadable"
)

const (
	// setAsidePath is the path of the command on the admin socket.
	setAsidePath = "/set-aside"
	// allParameter and recordParameter are the query parameters of the selection.
	allParameter, recordParameter = "all", "key"
)

// setAsideCommand holds the flags and arguments of the command.
type setAsideCommand struct {
	options *options.Options
	unreadable.Selection
	output string

	stdout io.Writer
}

// newSetAsideCommand returns the command that moves records that cannot be read out of the store of the server's flags.
func newSetAsideCommand(ctx context.Context, opts *options.Options, flags *pflag.FlagSet) *cobra.Command {
	c := &setAsideCommand{options: opts}
	command := &cobra.Command{
		Use:   "set-aside [KEY...] [--all]",
		Short: "Move records that cannot be read out of the store, so that the others can be listed again",
		Long: `A record that cannot be decrypted or decoded fails every list of its kind. This command writes such records to a file, and
removes them from the store once the file is on disk. Without KEY and without --all it lists them and changes nothing.

With files the command works for a running and for a stopped server, and writes set-aside-TIME.jsonl in --data-dir unless
--output names another file. With --storage-backend=etcd3 the servers can run, and --output is required. Each line of the
file is a record with its key, the error, and its value as stored, in base64. Only the owner of the file may read it.

--all is refused if several records are encrypted with one key and none of them can be decrypted: then the key is missing,
and the records are not damaged.

Exit codes: 0 done, or no such record exists; 1 listed some, or failed, and no record is lost; 2 wrong flags.`,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, keys []string) error {
			slices.Sort(keys)
			c.Keys, c.stdout = slices.Compact(keys), command.OutOrStdout()
			return c.run(ctx)
		},
	}
	command.Flags().BoolVar(&c.All, "all", false, "Move every record that cannot be read.")
	command.Flags().StringVarP(&c.output, "output", "o", "", "File to write, which must not exist.")
	addStorageFlags(command, flags)
	for _, name := range []string{
		"etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "encryption-provider-config", "namespace", "kubeconfig",
	} {
		command.Flags().AddFlag(flags.Lookup(name))
	}
	return withUsageErrors(command)
}

func (c *setAsideCommand) run(ctx context.Context) error {
	storage := c.options.Storage
	switch {
	case c.All && len(c.Keys) > 0:
		return usageError{errors.New("--all and KEY cannot be used together")}
	case storage.Backend == options.BackendEtcd3:
		return c.runOnEtcd(ctx)
	case storage.Backend != options.BackendBolt:
		return usageError{storage.UnknownBackend()}
	}
	query := url.Values{recordParameter: c.Keys}
	if c.All {
		query.Set(allParameter, "true")
	}
	if c.output != "" {
		path, err := filepath.Abs(c.output)
		if err != nil {
			return usageError{fmt.Errorf("--output=%q: %w", c.output, err)}
		}
		c.output = path
		query.Set(outputParameter, path)
	}
	answer, err := adminsocket.NewClient(storage.DataDir).Do(ctx, http.MethodPost, setAsidePath, query, nil)
	if err == nil {
		_, copyErr := io.Copy(c.stdout, answer)
		return errors.Join(copyErr, answer.Close())
	}
	if !errors.Is(err, adminsocket.ErrNotRunning) {
		return err
	}
	return c.runStopped(ctx)
}

// outputParameter is the query parameter of the file to write.
const outputParameter = "output"

// runStopped works on the files of a stopped server.
func (c *setAsideCommand) runStopped(ctx context.Context) (err error) {
	dir, err := datadir.OpenExisting(ctx, c.options.Storage.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	stored, err := openStill(ctx, dir.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return setAside(ctx, c.options.Storage, stored, filesOrigin(c.options.Storage), c.Selection, c.output, c.stdout)
}

// openStill opens the files in a folder without compacting their history.
func openStill(ctx context.Context, folder string) (stored *stores, err error) {
	stored = &stores{}
	still := bolt.Options{CompactionInterval: -1}
	if stored.api, err = bolt.Open(ctx, filepath.Join(folder, datadir.APIFile), still); err == nil {
		stored.work, err = bolt.Open(ctx, filepath.Join(folder, datadir.WorkFile), still)
	}
	if err != nil {
		return nil, errors.Join(err, stored.close())
	}
	return stored, nil
}

// runOnEtcd works on an etcd, which servers can use at the same time.
func (c *setAsideCommand) runOnEtcd(ctx context.Context) (err error) {
	storage := c.options.Storage
	switch {
	case len(storage.Etcd.StorageConfig.Transport.ServerList) == 0:
		return usageError{errors.New("--etcd-servers must name the servers of etcd")}
	case c.output == "" && (c.All || len(c.Keys) > 0):
		return usageError{errors.New("--output (-o) must name the file to write")}
	}
	stored, err := connectStores(ctx, storage, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.close()) }()
	origin, err := newOrigin(c.options)
	if err != nil {
		return err
	}
	return setAside(ctx, storage, stored, origin, c.Selection, c.output, c.stdout)
}

// filesOrigin returns the source of the configuration with which files are encrypted.
func filesOrigin(storage *options.StorageOptions) encryption.Origin {
	if file := storage.Etcd.EncryptionProviderConfigFilepath; file != "" {
		return encryption.File{Path: file}
	}
	return encryption.Folder{Path: storage.DataDir}
}

// setAside moves records out of open stores. The encryption configuration that it loads is released when ctx ends.
func setAside(
	ctx context.Context, storage *options.StorageOptions, stored *stores,
	origin encryption.Origin, selection unreadable.Selection, file string, out io.Writer,
) error {
	prefix, err := stored.prefix(ctx, storage)
	if err != nil {
		return err
	}
	encrypter, err := encryption.Try(ctx, origin)
	if err != nil {
		return err
	}
	if file == "" {
		file = filepath.Join(storage.DataDir, "set-aside-"+time.Now().UTC().Format("20060102T150405.000Z")+".jsonl")
	}
	return recordsOf(storage, encrypter, stored.encrypted(ctx, prefix)).SetAside(ctx, selection, file, out)
}

// serveSetAside sets records of the open stores aside.
func (s *stores) serveSetAside(storage *options.StorageOptions) adminsocket.Handler {
	return func(answer io.Writer, request *http.Request) error {
		query := request.URL.Query()
		selection := unreadable.Selection{All: query.Get(allParameter) == "true", Keys: query[recordParameter]}
		return setAside(request.Context(), storage, s, filesOrigin(storage), selection, query.Get(outputParameter), answer)
	}
}
