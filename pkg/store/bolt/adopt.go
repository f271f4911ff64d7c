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

// Adopt gives a closed store file the identity of the store that it replaces.
func Adopt(path string, identity uint64) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: DefaultLockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("opening store %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(metaIdentity, binary.BigEndian.AppendUint64(nil, identity))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("changing the identity of store %s: %w", path, err)
	}
	return nil
}
