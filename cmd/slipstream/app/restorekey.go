// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// keyCheck rejects a backup that the server could not decrypt after the restore.
type keyCheck struct {
	storage *options.StorageOptions
	// allowUnreadable accepts a backup with some undecryptable rows if a server can start on it.
	allowUnreadable bool
}

// run checks all rows with the configuration that the server will use: the user's own, or that in the key file.
func (c keyCheck) run(ctx context.Context, stored backup.Stores, keyFile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	held := &stores{api: stored.API, work: stored.Work}
	prefix, err := held.prefix(ctx, c.storage)
	if err != nil {
		return err
	}
	rows := held.encrypted(ctx, prefix)
	origin, remedy := c.origin(keyFile)
	encrypter, err := encryption.Try(ctx, origin)
	if _, ours := origin.(encryption.Home); ours && errors.Is(err, encryption.ErrAbsent) {
		return c.missing(ctx, origin, rows)
	}
	if err != nil {
		return err
	}
	check := encrypter.CheckAll
	if c.allowUnreadable {
		check = encrypter.Check
	}
	if err := check(ctx, rows...); err != nil {
		return fmt.Errorf("the server could not read the restored backup, and nothing was changed: %w; %s", err, remedy)
	}
	return nil
}

// origin returns the source of the configuration, and the remedy if a key is missing.
func (c keyCheck) origin(keyFile string) (origin encryption.Origin, remedy string) {
	const first, last = "add the missing key to ", " as a further provider, and restore again"
	if file := c.storage.Etcd.EncryptionProviderConfigFilepath; file != "" {
		return encryption.File{Path: file}, first + file + last
	}
	folder := encryption.Folder{Path: filepath.Dir(keyFile)}
	if keyFile != filepath.Join(c.storage.DataDir, encryption.FileName) {
		return folder, encryption.FileName + " is part of the backup: use a backup from another time"
	}
	return folder, first + keyFile + last + "; it is in the copy of that file from the time of the backup. " +
		"If the server is stopped, you can replace the file with that copy. In a Pod, where no file can be changed, put the copy into a Secret " +
		"and set encryption.configSecret of the chart to it. If the backup is encrypted with a configuration of your own, " +
		"set --encryption-provider-config to it"
}

// missing rejects encrypted rows without a configuration. For plain rows the server generates one.
func (c keyCheck) missing(ctx context.Context, origin encryption.Origin, rows []encryption.Rows) error {
	found, err := encryption.Find(ctx, rows...)
	if err != nil {
		return fmt.Errorf("looking for encrypted rows: %w", err)
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%s is missing, and the backup cannot be read without it, so nothing was changed: %s. Put the copy "+
		"from the time of the backup in its place, or set --encryption-provider-config to the configuration with which the backup "+
		"is encrypted, and restore again. In a Pod, put either into a Secret and set encryption.configSecret of the chart to it", origin, found)
}
