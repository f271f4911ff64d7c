// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Adopt gives a closed store file the identity of another one, whose place it takes.
func Adopt(path string, identity uint64) error {
	db, err := openClosed(path, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(metaIdentity, binary.BigEndian.AppendUint64(nil, identity))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("changing the identity of store %s: %w", path, err)
	}
	return nil
}

// openClosed opens a file that no engine has open, without making anything of it. It must be a store.
func openClosed(path string, readOnly bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: DefaultLockTimeout, ReadOnly: readOnly, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	if err := db.View(checkSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("opening store %s: %w", path, err), db.Close())
	}
	return db, nil
}

// checkSchema tells whether the file is a store of a format that is known, with all
// its buckets.
func checkSchema(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return errors.New("the file is not a store: it has no bucket meta")
	}
	if err := checkFormat(meta); err != nil {
		return err
	}
	for _, name := range [][]byte{bucketKeys, bucketLog, bucketCounts, bucketLeases, bucketLeaseKeys} {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("bucket %s is missing", name)
		}
	}
	for _, key := range [][]byte{metaRevision, metaCompacted, metaIdentity} {
		if len(meta.Get(key)) != 8 {
			return fmt.Errorf("%s is not a number of 8 bytes", key)
		}
	}
	return nil
}
