// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
	"github.com/configbutler/slipstream/pkg/store/keyspace"
)

// Prefixes are the key prefixes of objects and working state. They are the same in files and in etcd.
type Prefixes struct {
	Objects, Work string
}

// PrefixesBelow returns the prefixes of a server with the given key prefix.
func PrefixesBelow(prefix string) Prefixes {
	return Prefixes{Objects: prefix, Work: keyspace.Work(prefix)}
}

// ErrOtherKeys is returned if a file has keys outside of the prefixes, which would not be copied.
var ErrOtherKeys = errors.New("keys with another prefix exist")

// Sections returns the sections of an etcd that holds objects and working state.
func (p Prefixes) Sections(etcd *clientv3.Client) Store {
	return Sections(etcd, p.Objects, etcd, p.Work)
}

// PrefixOf returns the key prefix of the stores of a data directory; configured if they are empty. No server may run on
// the directory.
func PrefixOf(ctx context.Context, group string, dir *datadir.Dir, configured string) (prefix string, err error) {
	files, err := openFiles(ctx, dir.File, Prefixes{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	return keyspace.OfFiles(ctx, group, files.store[0].Client, files.store[1].Client, configured)
}

// FromDirectory copies the stores of a data directory to etcd. No server may run on the directory; its files are not
// modified.
func FromDirectory(ctx context.Context, dir *datadir.Dir, etcd *clientv3.Client, p Prefixes, o Options) (result Result, err error) {
	files, err := openFiles(ctx, dir.File, p)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	if err := files.checkOtherKeys(ctx); err != nil {
		return result, err
	}
	return Copy(ctx, files.store, p.Sections(etcd), o)
}

// IntoDirectory copies the content of etcd to the stores of a data directory. Existing files are moved to the folder
// aside; existing files with content are rejected unless o.Replace is set. If it fails, the directory has not changed,
// unless aside is returned.
func IntoDirectory(
	ctx context.Context, dir *datadir.Dir, etcd *clientv3.Client, p Prefixes, o Options, now time.Time,
) (result Result, aside string, err error) {
	from, err := p.Sections(etcd).cut(ctx)
	if err != nil {
		return result, "", fmt.Errorf("reading the source: %w", err)
	}
	floor, err := replacedRevision(ctx, dir, o.Replace)
	if err != nil {
		return result, "", err
	}
	incoming, err := datadir.Stage(dir.Path())
	if err != nil {
		return result, "", err
	}
	defer func() { err = errors.Join(err, incoming.Discard()) }()
	result, err = fill(ctx, incoming, from, p, max(floor, from[0].revision), o)
	if err != nil {
		return result, "", err
	}
	if err := inspect(ctx, incoming); err != nil {
		return result, "", err
	}
	if err := writeBeside(incoming, o.Beside); err != nil {
		return result, "", err
	}
	failpoint.Reach("migration-filled")
	if aside, err = incoming.Commit(now); err != nil {
		return result, "", err
	}
	if err := dir.CompleteReplacement(context.WithoutCancel(ctx)); err != nil {
		return result, aside, fmt.Errorf("the migration is committed, and the next start of the server finishes it: %w", err)
	}
	return result, aside, nil
}

// fill writes views to new stores, whose revisions begin above the given one.
func fill(ctx context.Context, incoming *datadir.Incoming, from []view, p Prefixes, above int64, o Options) (result Result, err error) {
	files, err := openFiles(ctx, incoming.File, p)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	for _, engine := range files.engines {
		if err := engine.Advance(ctx, above); err != nil {
			return result, err
		}
	}
	o.Pad = ""
	return copyViews(ctx, from, files.store, o)
}

// writeBeside writes files next to the stores, readable only by their owner.
func writeBeside(incoming *datadir.Incoming, files map[string][]byte) error {
	for name, content := range files {
		if err := durable.WriteFile(incoming.File(name), bytes.NewReader(content)); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// inspect verifies the new files.
func inspect(ctx context.Context, incoming *datadir.Incoming) error {
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		if _, err := bolt.Inspect(ctx, incoming.File(name)); err != nil {
			return err
		}
	}
	return nil
}

// replacedRevision returns the highest revision that the files of a directory have handed out, 0 if there are none. It
// returns an error for files with keys unless replace is set.
func replacedRevision(ctx context.Context, dir *datadir.Dir, replace bool) (highest int64, err error) {
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		if _, err := os.Stat(dir.File(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		engine, err := bolt.Open(ctx, dir.File(name), bolt.Options{CompactionInterval: -1})
		if err != nil {
			return 0, err
		}
		highest = max(highest, engine.Revision())
		keys, err := countKeys(ctx, engine, "")
		if err = errors.Join(err, engine.Close()); err != nil {
			return 0, err
		}
		if keys > 0 && !replace {
			return 0, fmt.Errorf("%w: %s has %d keys", ErrTargetNotEmpty, dir.File(name), keys)
		}
	}
	return highest, nil
}

// files are the open stores of a folder.
type files struct {
	engines []*bolt.Engine
	store   Store
	// stop ends their clients.
	stop context.CancelFunc
}

// openFiles opens or creates the stores of a folder.
func openFiles(ctx context.Context, path func(name string) string, p Prefixes) (*files, error) {
	clients, stop := context.WithCancel(ctx)
	f := &files{stop: stop}
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		engine, err := bolt.Open(ctx, path(name), bolt.Options{CompactionInterval: -1})
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.engines = append(f.engines, engine)
	}
	api, work := bolt.NewClient(clients, f.engines[0]).Client, bolt.NewClient(clients, f.engines[1]).Client
	f.store = Sections(api, p.Objects, work, p.Work)
	return f, nil
}

// checkOtherKeys returns an error if a file holds keys outside of its section.
func (f *files) checkOtherKeys(ctx context.Context) error {
	for i, engine := range f.engines {
		all, err := countKeys(ctx, engine, "")
		if err != nil {
			return err
		}
		below, err := countKeys(ctx, engine, f.store[i].Prefix)
		if err != nil {
			return err
		}
		if all != below {
			return fmt.Errorf("%w: %s has %d keys, %d of them below %s: a server was started with another --etcd-prefix",
				ErrOtherKeys, engine.Path(), all, below, f.store[i].Prefix)
		}
	}
	return nil
}

func countKeys(ctx context.Context, engine *bolt.Engine, prefix string) (int64, error) {
	clients, stop := context.WithCancel(ctx)
	defer stop()
	response, err := bolt.NewClient(clients, engine).KV.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting the keys of %s: %w", engine.Path(), err)
	}
	return response.Count, nil
}

func (f *files) close() error {
	f.stop()
	var errs []error
	for _, engine := range f.engines {
		errs = append(errs, engine.Close())
	}
	return errors.Join(errs...)
}
