// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// Stores are the open stores of a data directory.
type Stores struct {
	API, Work *bolt.Engine
}

// Options configure a backup.
type Options struct {
	// Version is the version of the program.
	Version string
	// KeyFile is the file with the encryption key, which is added to the backup under its own name. If empty, the key is
	// not added.
	KeyFile string
	// Now is the time of the backup.
	Now time.Time
}

// Write writes a backup of both stores at a single point in time.
func Write(w io.Writer, stores Stores, options Options) (err error) {
	views, key, err := cut(stores, options.KeyFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.CloseViews(views)) }()
	m := archive.Manifest{Version: options.Version, Created: options.Now.UTC().Truncate(time.Second)}
	var contents []io.WriterTo
	for i, name := range []string{datadir.APIFile, datadir.WorkFile} {
		m.Stores = append(m.Stores, describe(name, views[i].FileState))
		contents = append(contents, views[i])
	}
	if options.KeyFile != "" {
		m.Files = []archive.File{{Name: filepath.Base(options.KeyFile), Size: int64(len(key))}}
		contents = append(contents, bytes.NewReader(key))
	}
	if err := archive.Write(w, m, contents); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// cut takes views of the stores, and reads the key with which they are encrypted. If the key changes meanwhile, it may
// not decrypt the views, so both are taken again.
func cut(stores Stores, keyFile string) (views []*bolt.View, key []byte, err error) {
	for {
		before, err := readKey(keyFile)
		if err != nil {
			return nil, nil, err
		}
		if views, err = bolt.Cut(stores.API, stores.Work); err != nil {
			return nil, nil, fmt.Errorf("taking views of both stores: %w", err)
		}
		key, err = readKey(keyFile)
		if err == nil && bytes.Equal(before, key) {
			return views, key, nil
		}
		if err := errors.Join(err, bolt.CloseViews(views)); err != nil {
			return nil, nil, err
		}
	}
}

func readKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption key: %w", err)
	}
	return key, nil
}

func describe(name string, state bolt.FileState) archive.Store {
	return archive.Store{
		File:     archive.File{Name: name, Size: state.Size},
		Identity: fmt.Sprintf("%016x", state.Identity),
		Revision: state.Revision, CompactedRevision: state.CompactRevision,
	}
}
