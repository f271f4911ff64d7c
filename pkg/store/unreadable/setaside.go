// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// Selection selects the records to set aside.
type Selection struct {
	// All selects every record that cannot be read.
	All bool
	// Keys selects single records.
	Keys []string
}

// kept is the JSON line of a record in the file.
type kept struct {
	Key      string `json:"key"`
	Resource string `json:"resource"`
	Revision int64  `json:"revision"`
	Problem  string `json:"problem"`
	// Value is the stored value, unmodified.
	Value []byte `json:"value"`
}

// candidate is a record that can be set aside.
type candidate struct {
	Record
	rows encryption.Rows
	// revision is the revision at which it was found.
	revision int64
	// by is the name of the key that encrypted it; decrypted reports whether it could be decrypted.
	by        string
	decrypted bool
}

// keyTally counts the rows encrypted with one key.
type keyTally struct{ decrypted, undecrypted int }

// missing reports whether there are several rows of the key and none could be decrypted: then the key itself may be
// missing.
func (t keyTally) missing() bool { return t.decrypted == 0 && t.undecrypted > 1 }

// Check visits the records that cannot be read, except for those whose key is not in the configuration. It returns the
// names of these keys.
func (s *Store) Check(ctx context.Context, found func(Record)) (missing []string, err error) {
	present, err := s.Encrypter.Keys()
	if err != nil {
		return nil, err
	}
	all, tallies, err := s.candidates(ctx)
	for by, tally := range tallies {
		if by != "" && tally.missing() && !slices.Contains(present, by) {
			missing = append(missing, by)
		}
	}
	for _, each := range all {
		if each.decrypted || !slices.Contains(missing, each.by) {
			found(each.Record)
		}
	}
	slices.Sort(missing)
	return missing, err
}

// SetAside moves records that cannot be read out of the store to a file, which must not exist, and prints each on out.
// The records are durable in the file before the first is removed: after an interruption, records may be in both, and the
// next call removes them from the store. It returns an error for a record that can be read, and for All if no record of
// some key can be decrypted: the key is missing then. Without a selection it lists the records that can be set aside.
func (s *Store) SetAside(ctx context.Context, selection Selection, file string, out io.Writer) error {
	found, tallies, err := s.candidates(ctx)
	if err != nil {
		return err
	}
	if !selection.All && len(selection.Keys) == 0 {
		return list(found, out)
	}
	if selection.All {
		if err := checkKeys(tallies); err != nil {
			return err
		}
	}
	chosen, err := s.choose(ctx, found, selection, out)
	if err != nil || len(chosen) == 0 {
		return err
	}
	rows, err := keep(ctx, chosen, file)
	if err != nil {
		return err
	}
	for i, each := range chosen {
		if rows[i] == nil {
			continue
		}
		removed, err := each.rows.Remove(ctx, rows[i])
		if err == nil && !removed {
			err = fmt.Errorf("%s has changed meanwhile and is still in the store: run the command again", each.Record)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "set aside: %s\n", each.Record); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "kept in %s\n", file)
	return err
}

func (s *Store) candidates(ctx context.Context) (found []candidate, tallies map[string]keyTally, err error) {
	tallies = map[string]keyTally{}
	err = s.each(ctx, func(rows encryption.Rows, row *mvccpb.KeyValue, decrypted bool, err error) error {
		by := encryption.EncryptedBy(row.Value)
		tally := tallies[by]
		switch {
		case decrypted:
			tally.decrypted++
		case by != "" || s.Decode(row.Value) == nil: // Otherwise it is neither encrypted nor plain.
			tally.undecrypted++
		}
		tallies[by] = tally
		if err != nil {
			found = append(found, candidate{Record: newRecord(rows, row, err), rows: rows, revision: row.ModRevision, by: by, decrypted: decrypted})
		}
		return nil
	})
	return found, tallies, err
}

// ErrUnreadable is returned if there are records that cannot be read.
var ErrUnreadable = errors.New("some records cannot be read")

// list prints the records that can be set aside.
func list(found []candidate, out io.Writer) error {
	for _, each := range found {
		if _, err := fmt.Fprintf(out, "%s: %v\n", each.Record, each.Err); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "every record can be read")
		return err
	}
	return fmt.Errorf("%w: give the keys of the records to set aside, or add --all for all %d", ErrUnreadable, len(found))
}

// checkKeys returns an error if there are several rows of a key and none could be decrypted: the key is missing then.
func checkKeys(tallies map[string]keyTally) error {
	for by, tally := range tallies {
		if !tally.missing() {
			continue
		}
		kind, lacks, remedy := "encrypted with "+by, "the key", "add the key"
		if by == "" {
			kind, lacks, remedy = "not encrypted", "the provider identity", "add the provider"
		}
		return fmt.Errorf("none of the %d records that are %s can be read, so the encryption configuration lacks "+
			"%s, and the records are not damaged: %s; to set records aside nevertheless, give their keys", tally.undecrypted, kind, lacks, remedy)
	}
	return nil
}

// choose returns the selected records among those that cannot be read. A record that does not exist was set aside before.
func (s *Store) choose(ctx context.Context, found []candidate, selection Selection, out io.Writer) ([]candidate, error) {
	if selection.All {
		if len(found) == 0 {
			return nil, list(found, out)
		}
		return found, nil
	}
	var chosen []candidate
	for _, key := range selection.Keys {
		at := slices.IndexFunc(found, func(c candidate) bool { return c.Key == key })
		if at >= 0 {
			chosen = append(chosen, found[at])
			continue
		}
		for _, rows := range s.Rows {
			if row, err := rows.Get(ctx, key); err != nil {
				return nil, err
			} else if row != nil {
				return nil, fmt.Errorf("the record with the key %q can be read: nothing was set aside", key)
			}
		}
		if _, err := fmt.Fprintf(out, "there is no record with the key %q\n", key); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// keep writes records to a new file, and returns their rows, nil for a row that no longer exists. It returns an error for
// a row that has changed since it was found, because it may be readable now.
func keep(ctx context.Context, chosen []candidate, path string) (rows []*mvccpb.KeyValue, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("writing the records that are set aside: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("writing the records that are set aside: %w", err), os.Remove(path))
		}
	}()
	encoder := json.NewEncoder(file)
	for _, each := range chosen {
		row, err := each.rows.Get(ctx, each.Key)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if row == nil {
			continue
		}
		if row.ModRevision != each.revision {
			return nil, fmt.Errorf("%s has changed meanwhile: nothing was set aside, run the command again", each.Record)
		}
		if err := encoder.Encode(kept{
			Key: each.Key, Resource: each.Resource.String(), Revision: row.ModRevision, Problem: each.Err.Error(), Value: row.Value,
		}); err != nil {
			return nil, err
		}
	}
	return rows, errors.Join(file.Sync(), durable.SyncDir(filepath.Dir(path)))
}
