// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"k8s.io/utils/lru"
)

// formatVersion is the format of store files.
const formatVersion = 1

// firstRevision is the revision of an empty store, as in etcd.
const firstRevision = 1

var (
	bucketMeta      = []byte("meta")
	bucketKeys      = []byte("keys")
	bucketLog       = []byte("log")
	bucketCounts    = []byte("counts")
	bucketLeases    = []byte("leases")
	bucketLeaseKeys = []byte("leasekeys")

	metaFormat    = []byte("format")
	metaRevision  = []byte("revision")
	metaCompacted = []byte("compacted")
	metaIdentity  = []byte("identity")
)

// initialise creates the buckets of a new file and refuses a file of another format.
func initialise(db *bbolt.DB) error {
	format, err := readFormat(db)
	switch {
	case err != nil || format == formatVersion:
		return err
	case !isNew(db):
		return damaged(fmt.Sprintf("%s: the bucket is missing", bucketMeta))
	default:
		return db.Update(createBuckets)
	}
}

// isNew reports whether no transaction was ever committed to a file.
func isNew(db *bbolt.DB) (created bool) {
	_ = db.View(func(tx *bbolt.Tx) error { // The function returns none, and the file is open.
		created = tx.ID() <= 1
		return nil
	})
	return created
}

// checkSchema returns an error unless a file has all buckets and records that the engine relies on.
func checkSchema(ctx context.Context, db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		first := ""
		v := newVerifier(ctx, tx, "", Verification{Found: func(f Finding) {
			if first == "" {
				first = f.problem()
			}
		}})
		if !v.verifyBuckets() || !v.verifyMeta() {
			return damaged(first)
		}
		return nil
	})
}

// readFormat returns the format of a file, 0 if the file is new. It fails for a format other than formatVersion.
func readFormat(db *bbolt.DB) (format int64, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return nil
		}
		format = getInt64(meta.Get(metaFormat))
		return checkFormat(meta)
	})
	return format, err
}

func checkFormat(meta *bbolt.Bucket) error {
	if format := getInt64(meta.Get(metaFormat)); format != formatVersion {
		return fmt.Errorf("the file has format %d and this version reads format %d only: use the version that wrote it, or a newer one",
			format, formatVersion)
	}
	return nil
}

func createBuckets(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketMeta, bucketKeys, bucketLog, bucketCounts, bucketLeases, bucketLeaseKeys} {
		if _, err := tx.CreateBucket(name); err != nil {
			return fmt.Errorf("creating bucket %s: %w", name, err)
		}
	}
	identity := make([]byte, 8)
	if _, err := rand.Read(identity); err != nil {
		return fmt.Errorf("generating the store's identity: %w", err)
	}
	meta := tx.Bucket(bucketMeta)
	for _, entry := range []struct{ key, value []byte }{
		{metaFormat, putInt64(formatVersion)},
		{metaRevision, putInt64(firstRevision)},
		{metaCompacted, putInt64(0)},
		{metaIdentity, identity},
	} {
		if err := meta.Put(entry.key, entry.value); err != nil {
			return fmt.Errorf("writing %s: %w", entry.key, err)
		}
	}
	return nil
}

// snapshot is the store as one bbolt transaction sees it.
type snapshot struct {
	keys, log, counts, leases, leaseKeys *bbolt.Bucket

	// revision is the current revision, compacted the oldest that can be read.
	revision, compacted int64

	// remaining is set for committed state only: a revision that is not committed
	// may be given to other changes.
	remaining *lru.Cache
}

func newSnapshot(tx *bbolt.Tx) snapshot {
	meta := tx.Bucket(bucketMeta)
	return snapshot{
		keys:      tx.Bucket(bucketKeys),
		log:       tx.Bucket(bucketLog),
		counts:    tx.Bucket(bucketCounts),
		leases:    tx.Bucket(bucketLeases),
		leaseKeys: tx.Bucket(bucketLeaseKeys),
		revision:  getInt64(meta.Get(metaRevision)),
		compacted: getInt64(meta.Get(metaCompacted)),
	}
}

// readIdentity returns the number that identifies the store.
func readIdentity(db *bbolt.DB) (identity uint64, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		identity = binary.BigEndian.Uint64(tx.Bucket(bucketMeta).Get(metaIdentity))
		return nil
	})
	return identity, err
}
