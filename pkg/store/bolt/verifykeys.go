// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
	"hash/maphash"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// verifier checks the records of one file against each other.
type verifier struct {
	snapshot
	ctx  context.Context //nolint:containedctx // The verifier lives for one call.
	file string
	to   Verification
	meta *bbolt.Bucket
	seed maphash.Seed

	// newest is the last change of each key in the log, except for those already compared with the key's state.
	newest map[string]keyState
	// directories counts the existing keys, leased has the lease of those with one.
	directories map[string]int64
	leased      map[string]int64
}

// keyState is the state of a key after a change.
type keyState struct {
	deleted                           bool
	revision, create, versions, lease int64
	// value is a hash.
	value uint64
}

func newVerifier(ctx context.Context, tx *bbolt.Tx, file string, v Verification) *verifier {
	check := &verifier{
		ctx: ctx, file: file, to: v, meta: tx.Bucket(bucketMeta), seed: maphash.MakeSeed(),
		newest: map[string]keyState{}, directories: map[string]int64{}, leased: map[string]int64{},
	}
	if check.meta != nil {
		check.snapshot = newSnapshot(tx)
	}
	return check
}

// run checks everything, the log before the keys, which are compared with it.
func (v *verifier) run() error {
	if !v.verifyBuckets() || !v.verifyMeta() {
		return nil
	}
	for _, check := range []func() error{v.verifyLog, v.verifyKeys, v.verifyCounts, v.verifyLeases, v.verifyLeaseKeys} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// found reports a problem.
func (v *verifier) found(bucket []byte, key, format string, arguments ...any) {
	v.to.Found(Finding{File: v.file, Bucket: string(bucket), Key: key, Problem: fmt.Sprintf(format, arguments...)})
}

// forEach visits the records of a bucket and reports the progress.
func (v *verifier) forEach(name []byte, bucket *bbolt.Bucket, visit func(key, record []byte)) error {
	done := int64(0)
	return bucket.ForEach(func(key, record []byte) error {
		visit(key, record)
		done++
		return v.to.step(v.ctx, string(name), done)
	})
}

func (v *verifier) verifyBuckets() (complete bool) {
	complete = true
	if v.meta == nil {
		v.found(bucketMeta, "", "the bucket is missing")
		return false
	}
	for _, each := range []struct {
		name   []byte
		bucket *bbolt.Bucket
	}{
		{bucketKeys, v.keys}, {bucketLog, v.log}, {bucketCounts, v.counts}, {bucketLeases, v.leases}, {bucketLeaseKeys, v.leaseKeys},
	} {
		if each.bucket == nil {
			v.found(each.name, "", "the bucket is missing")
			complete = false
		}
	}
	return complete
}

func (v *verifier) verifyMeta() (usable bool) {
	usable = true
	for _, name := range [][]byte{metaFormat, metaRevision, metaCompacted, metaIdentity} {
		if n := len(v.meta.Get(name)); n != 8 {
			v.found(bucketMeta, string(name), "%d bytes long, must be 8", n)
			usable = false
		}
	}
	if err := checkFormat(v.meta); err != nil && usable {
		v.found(bucketMeta, string(metaFormat), "%v", err)
		return false
	}
	if usable && v.revision < firstRevision {
		v.found(bucketMeta, string(metaRevision), "%d, must be at least %d", v.revision, firstRevision)
		usable = false
	}
	if usable && (v.compacted < 0 || v.compacted > v.revision) {
		v.found(bucketMeta, string(metaCompacted), "%d, must be between 0 and the revision, %d", v.compacted, v.revision)
		usable = false
	}
	return usable
}

func (v *verifier) verifyKeys() error {
	err := v.forEach(bucketKeys, v.keys, func(key, record []byte) {
		for _, directory := range directoriesOf(key) {
			v.directories[string(directory)]++
		}
		kv, err := decodeState(key, record, true)
		if err != nil {
			v.found(bucketKeys, string(key), "%v", err)
			delete(v.newest, string(key))
			return
		}
		if kv.Lease != 0 {
			v.leased[string(key)] = kv.Lease
		}
		v.verifyLife(bucketKeys, string(key), kv)
		v.compareWithLog(kv)
	})
	for key, state := range v.newest {
		if !state.deleted {
			v.found(bucketKeys, key, "missing, the log says that revision %d wrote it", state.revision)
		}
	}
	return err
}

// verifyLife checks the revisions and the version of a key: every version was a change, and every change has its own
// revision.
func (v *verifier) verifyLife(bucket []byte, name string, kv *mvccpb.KeyValue) {
	create, modified, version := kv.CreateRevision, kv.ModRevision, kv.Version
	switch {
	case create <= 0 || create > modified || modified > v.revision:
		v.found(bucket, name, "created at revision %d and changed at %d, must be in order and up to the current revision, %d", create,
			modified, v.revision)
	case version < 1 || version-1 > modified-create || version == 1 && create != modified:
		v.found(bucket, name, "version %d, which is impossible for a key created at revision %d and changed at %d", version, create, modified)
	}
}

// compareWithLog checks that the state of a key is that of its last change in the log.
func (v *verifier) compareWithLog(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	state, logged := v.newest[key]
	delete(v.newest, key)
	switch {
	case !logged && kv.ModRevision > max(v.compacted, firstRevision):
		v.found(bucketKeys, key, "changed at revision %d, the log has no such change", kv.ModRevision)
	case logged && state.deleted:
		v.found(bucketKeys, key, "exists, the log says that revision %d deleted it", state.revision)
	case logged && state != v.stateOf(kv):
		v.found(bucketKeys, key, "state of revision %d differs from what the log says of revision %d: %s",
			kv.ModRevision, state.revision, v.stateOf(kv).difference(state))
	}
}

// stateOf returns a key's state in a small, comparable form.
func (v *verifier) stateOf(kv *mvccpb.KeyValue) keyState {
	return keyState{
		revision: kv.ModRevision, create: kv.CreateRevision, versions: kv.Version, lease: kv.Lease,
		value: maphash.Bytes(v.seed, kv.Value),
	}
}

// difference names the fields that differ from the log.
func (s keyState) difference(logged keyState) string {
	switch {
	case s.revision != logged.revision:
		return "another revision"
	case s.create != logged.create:
		return fmt.Sprintf("created at %d, logged %d", s.create, logged.create)
	case s.versions != logged.versions:
		return fmt.Sprintf("version %d, logged %d", s.versions, logged.versions)
	case s.lease != logged.lease:
		return fmt.Sprintf("lease %x, logged %x", s.lease, logged.lease)
	default:
		return "another value"
	}
}

// directoriesOf returns the directories in which a key is counted.
func directoriesOf(key []byte) (directories [][]byte) {
	for i, c := range key {
		if c != '/' {
			continue
		}
		if len(directories) == countedDepth {
			break
		}
		directories = append(directories, key[:i+1])
	}
	return directories
}

func (v *verifier) verifyCounts() error {
	err := v.forEach(bucketCounts, v.counts, func(directory, record []byte) {
		want, counted := v.directories[string(directory)]
		delete(v.directories, string(directory))
		switch n := getInt64(record); {
		case len(record) != 8:
			v.found(bucketCounts, string(directory), "%d bytes long, must be 8", len(record))
		case !counted:
			v.found(bucketCounts, string(directory), "counts %d keys, and there are none", n)
		case n != want:
			v.found(bucketCounts, string(directory), "counts %d keys, and there are %d", n, want)
		}
	})
	for directory, n := range v.directories {
		v.found(bucketCounts, directory, "missing, and there are %d keys", n)
	}
	return err
}

func (v *verifier) verifyLeases() error {
	return v.forEach(bucketLeases, v.leases, func(id, record []byte) {
		ttl, _ := decodeLease(record)
		switch {
		case len(id) != 8:
			v.found(bucketLeases, string(id), "the lease's name is %d bytes long, must be 8", len(id))
		case len(record) != 16 || ttl < 1:
			v.found(bucketLeases, fmt.Sprintf("%x", getInt64(id)), "no time to live: %v", errCorrupt)
		}
	})
}

// verifyLeaseKeys checks that the references between leases and keys are consistent.
func (v *verifier) verifyLeaseKeys() error {
	err := v.forEach(bucketLeaseKeys, v.leaseKeys, func(name, _ []byte) {
		if len(name) <= 8 {
			v.found(bucketLeaseKeys, string(name), "has no key")
			return
		}
		lease, key := getInt64(name), string(name[8:])
		held, leased := v.leased[key]
		switch {
		case v.leases.Get(name[:8]) == nil:
			v.found(bucketLeaseKeys, key, "attached to lease %x, which does not exist", lease)
		case !leased || held != lease:
			v.found(bucketLeaseKeys, key, "attached to lease %x, and the key says %x", lease, held)
		}
		if held == lease {
			delete(v.leased, key)
		}
	})
	for key, lease := range v.leased {
		v.found(bucketLeaseKeys, key, "missing, and the key says that it belongs to lease %x", lease)
	}
	return err
}
