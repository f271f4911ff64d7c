// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// populated returns the path of a closed store with some history: /a/1 changed twice, /a/2 deleted, /a/3 recreated after a
// delete, /b/leased with lease 77, and two keys at revision 10.
func populated(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	e := reopen(t, path)
	defer closeEngine(t, e)
	set(t, e, "/a/1", "x")    // 2
	set(t, e, "/a/1", "y")    // 3
	set(t, e, "/a/2", "x")    // 4
	unset(t, e, "/a/2")       // 5
	set(t, e, "/a/3", "x")    // 6
	unset(t, e, "/a/3")       // 7
	set(t, e, "/a/3", "once") // 8
	grant(t, e, 77, 1000)
	putLeased(t, e, "/b/leased", 77) // 9
	both := &pb.TxnRequest{Success: []*pb.RequestOp{putOp("/c/1", "x"), putOp("/c/2", "x")}}
	if _, err := e.Txn(t.Context(), both); err != nil { // 10
		t.Fatal(err)
	}
	return path
}

func grant(t *testing.T, e *bolt.Engine, id, ttl int64) {
	t.Helper()
	if _, err := e.Grant(t.Context(), &pb.LeaseGrantRequest{ID: id, TTL: ttl}); err != nil {
		t.Fatal(err)
	}
}

func putLeased(t *testing.T, e *bolt.Engine, key string, lease int64) {
	t.Helper()
	if _, err := e.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: []byte("x"), Lease: lease}); err != nil {
		t.Fatal(err)
	}
}

func putOp(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

// verify returns the findings of Verify for a file, without its path.
func verify(t *testing.T, path string) (found []string) {
	t.Helper()
	err := bolt.Verify(t.Context(), path, bolt.Verification{
		Found: func(f bolt.Finding) {
			if f.File != path {
				t.Errorf("finding for file %s", f.File)
			}
			found = append(found, strings.TrimPrefix(f.String(), path+": "))
		},
		Checking: func(string, int64) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// damage modifies a file with bbolt directly.
func damage(t *testing.T, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// logName is the name of a log record.
func logName(revision int64, sub uint32) []byte {
	return binary.BigEndian.AppendUint32(number(revision), sub)
}

// state returns the record of a key in the keys bucket.
func state(modified, create, version, lease int64, value string) []byte {
	var record []byte
	for _, n := range []int64{modified, create, version, lease} {
		record = binary.AppendUvarint(record, uint64(n))
	}
	return append(record, value...)
}

// put and remove return functions that write or delete one record. The last element of path is its key, the ones before
// are buckets.
func put(record []byte, path ...[]byte) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return bucketAt(tx, path).Put(path[len(path)-1], record) }
}

func remove(path ...[]byte) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return bucketAt(tx, path).Delete(path[len(path)-1]) }
}

func bucketAt(tx *bbolt.Tx, path [][]byte) *bbolt.Bucket {
	bucket := tx.Bucket(path[0])
	for _, name := range path[1 : len(path)-1] {
		bucket = bucket.Bucket(name)
	}
	return bucket
}

// replaceIn replaces bytes that occur exactly once in a record.
func replaceIn(old, swapped string, path ...[]byte) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		bucket, name := bucketAt(tx, path), path[len(path)-1]
		record := bucket.Get(name)
		if bytes.Count(record, []byte(old)) != 1 {
			return fmt.Errorf("%q does not occur exactly once in %q", old, record)
		}
		return bucket.Put(name, bytes.Replace(record, []byte(old), []byte(swapped), 1))
	}
}

func TestVerifySound(t *testing.T) {
	path := populated(t)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("undamaged store: %q", found)
	}
	e := reopen(t, path)
	for i := range 2500 {
		set(t, e, fmt.Sprintf("/many/%d", i%100), "x")
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: 1700}); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("after compaction: %q", found)
	}
	e = reopen(t, path)
	if err := e.Advance(t.Context(), 9_000); err != nil {
		t.Fatal(err)
	}
	set(t, e, "/a/1", "z")
	closeEngine(t, e)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("after an advance: %q", found)
	}
}

// TestVerifyDamage violates each invariant once. Verify must report it and nothing else.
func TestVerifyDamage(t *testing.T) {
	b := func(name string) []byte { return []byte(name) }
	segment := number(0)
	for name, test := range map[string]struct {
		damage func(tx *bbolt.Tx) error
		want   []string
	}{
		"a bucket is missing": {
			func(tx *bbolt.Tx) error { return tx.DeleteBucket(b("counts")) },
			[]string{`counts: the bucket is missing`},
		},
		"the format is unknown": {
			put(number(0), b("meta"), b("format")),
			[]string{
				`meta "format": the file has format 0 and this version reads format 1 only: use the version that wrote it, or a newer one`,
			},
		},
		"the revision is too short": {put([]byte{1}, b("meta"), b("revision")), []string{`meta "revision": 1 bytes long, must be 8`}},
		"the compacted revision is too high": {
			put(number(11), b("meta"), b("compacted")), []string{`meta "compacted": 11, must be between 0 and the revision, 10`},
		},
		"the revision is too low": {
			put(number(9), b("meta"), b("revision")),
			[]string{
				`keys "/c/1": created at revision 10 and changed at 10, must be in order and up to the current revision, 9`,
				`keys "/c/2": created at revision 10 and changed at 10, must be in order and up to the current revision, 9`,
				`log "10.0": beyond the current revision, 9`,
				`log "10.0": created at revision 10 and changed at 10, must be in order and up to the current revision, 9`,
				`log "10.1": beyond the current revision, 9`,
				`log "10.1": created at revision 10 and changed at 10, must be in order and up to the current revision, 9`,
			},
		},
		"the revision is too high": {put(number(12), b("meta"), b("revision")), []string{`log "11-12": missing, the current revision is 12`}},

		"a key is missing": {
			remove(b("keys"), b("/c/2")),
			[]string{
				`counts "/": counts 5 keys, and there are 4`, `counts "/c/": counts 2 keys, and there are 1`,
				`keys "/c/2": missing, the log says that revision 10 wrote it`,
			},
		},
		"a key is too much": {
			put(state(4, 4, 1, 0, "x"), b("keys"), b("/a/2")),
			[]string{
				`counts "/": counts 5 keys, and there are 6`, `counts "/a/": counts 2 keys, and there are 3`,
				`keys "/a/2": exists, the log says that revision 5 deleted it`,
			},
		},
		"a key cannot be read": {put([]byte{0x80}, b("keys"), b("/a/1")), []string{`keys "/a/1": state of "/a/1": corrupt record`}},
		"a key's value differs": {
			put(state(8, 8, 1, 0, "Once"), b("keys"), b("/a/3")),
			[]string{`keys "/a/3": state of revision 8 differs from what the log says of revision 8: another value`},
		},
		"a key's version differs": {
			put(state(3, 2, 1, 0, "y"), b("keys"), b("/a/1")),
			[]string{
				`keys "/a/1": state of revision 3 differs from what the log says of revision 3: version 1, logged 2`,
				`keys "/a/1": version 1, which is impossible for a key created at revision 2 and changed at 3`,
			},
		},
		"a key is older than the log says": {
			put(state(2, 2, 1, 0, "x"), b("keys"), b("/a/1")),
			[]string{`keys "/a/1": state of revision 2 differs from what the log says of revision 3: another revision`},
		},

		"a revision is missing": {
			remove(b("log"), segment, logName(4, 0)),
			[]string{
				`log "4": missing, the next one is 5`, `log "5.0": the previous value of "/a/2" was written at revision 4, which is not in the log`,
			},
		},
		"the newest revision is missing": {
			func(tx *bbolt.Tx) error {
				return errors.Join(remove(b("log"), segment, logName(10, 0))(tx), remove(b("log"), segment, logName(10, 1))(tx))
			},
			[]string{
				`keys "/c/1": changed at revision 10, the log has no such change`, `keys "/c/2": changed at revision 10, the log has no such change`,
				`log "10": missing, the current revision is 10`,
			},
		},
		"a change of a revision is missing": {
			remove(b("log"), segment, logName(10, 0)),
			[]string{
				`keys "/c/1": changed at revision 10, the log has no such change`,
				`log "10.1": the changes of the revision are not numbered without a gap: 0 should be next`,
			},
		},
		"a change cannot be read": {
			put([]byte{2, 0x80}, b("log"), segment, logName(3, 0)),
			[]string{
				`keys "/a/1": state of revision 3 differs from what the log says of revision 2: another revision`,
				`log "3.0": change of revision 3: corrupt record`,
			},
		},
		"a change is in the wrong segment": {
			func(tx *bbolt.Tx) error {
				other, err := tx.Bucket(b("log")).CreateBucket(number(3))
				if err != nil {
					return err
				}
				record := bytes.Clone(tx.Bucket(b("log")).Bucket(segment).Get(logName(10, 1)))
				return errors.Join(other.Put(logName(10, 1), record), remove(b("log"), segment, logName(10, 1))(tx))
			},
			[]string{`log "10.1": in segment 3, belongs to 0`},
		},
		"what was before differs": {
			replaceIn("y\x02\x02\x01\x00x", "y\x02\x02\x01\x00z", b("log"), segment, logName(3, 0)),
			[]string{`log "3.0": the previous value of "/a/1" differs from that of revision 2: another value`},
		},

		"a count is wrong":   {put(number(7), b("counts"), b("/a/")), []string{`counts "/a/": counts 7 keys, and there are 2`}},
		"a count is missing": {remove(b("counts"), b("/b/")), []string{`counts "/b/": missing, and there are 1 keys`}},
		"a count is left":    {put(number(1), b("counts"), b("/gone/")), []string{`counts "/gone/": counts 1 keys, and there are none`}},

		"a lease is missing": {remove(b("leases"), number(77)), []string{`leasekeys "/b/leased": attached to lease 4d, which does not exist`}},
		"a lease lasts no time": {
			put(make([]byte, 16), b("leases"), number(77)),
			[]string{`leases "4d": no time to live: corrupt record`},
		},
		"a key is not with its lease": {
			remove(b("leasekeys"), append(number(77), "/b/leased"...)),
			[]string{`leasekeys "/b/leased": missing, and the key says that it belongs to lease 4d`},
		},
		"a key is with a lease not its own": {
			put(nil, b("leasekeys"), append(number(77), "/a/1"...)), []string{`leasekeys "/a/1": attached to lease 4d, and the key says 0`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := populated(t)
			damage(t, path, test.damage)
			for i := range test.want {
				test.want[i] = strings.ReplaceAll(test.want[i], "PATH", path)
			}
			if found := verify(t, path); !slices.Equal(found, test.want) {
				t.Errorf("found\n  %s\nwant\n  %s", strings.Join(found, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// TestVerifyDamagedPages checks that Verify reports damaged pages and does not panic.
func TestVerifyDamagedPages(t *testing.T) {
	path := populated(t)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for name, test := range map[string]struct {
		damage func(raw []byte) []byte
		want   string
	}{
		"not a store":         {func([]byte) []byte { return []byte("not a store at all") }, "neither meta page is valid"},
		"an empty file":       {func([]byte) []byte { return nil }, "neither meta page is valid"},
		"both metas are lost": {func(raw []byte) []byte { clear(raw[:2*page]); return raw }, "neither meta page is valid"},
		"the end is cut off":  {func(raw []byte) []byte { return raw[:3*page] }, "it was cut off"},
		"a page is a copy of another": {func(raw []byte) []byte {
			copy(raw[rootPage(raw)*page:], raw[:page])
			return raw
		}, "refers to, has the number 0"},
		"a page has an unknown type": {func(raw []byte) []byte {
			binary.NativeEndian.PutUint16(raw[rootPage(raw)*page+8:], 0x40)
			return raw
		}, "is neither a branch nor a leaf"},
		"a page has too many entries": {func(raw []byte) []byte {
			binary.NativeEndian.PutUint16(raw[rootPage(raw)*page+10:], 60000)
			return raw
		}, "has no room for the 60000 entries"},
		"an entry lies outside": {func(raw []byte) []byte {
			binary.NativeEndian.PutUint32(raw[rootPage(raw)*page+16+4:], 1<<20)
			return raw
		}, "lies beyond the page's end"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, test.damage(bytes.Clone(sound)), 0o600); err != nil {
				t.Fatal(err)
			}
			found := verify(t, path)
			if len(found) == 0 || !strings.Contains(found[0], test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// rootPage returns the page of the root bucket of the newest transaction.
func rootPage(raw []byte) int {
	newest, transaction := 0, uint64(0)
	for _, at := range []int{16, 16 + os.Getpagesize()} {
		if id := binary.NativeEndian.Uint64(raw[at+48:]); id >= transaction {
			newest, transaction = at, id
		}
	}
	return int(binary.NativeEndian.Uint64(raw[newest+16:]))
}

// TestVerifyErrors checks that Verify returns an error and no finding if it cannot check a file.
func TestVerifyErrors(t *testing.T) {
	unexpected := bolt.Verification{Found: func(f bolt.Finding) { t.Errorf("found %v", f) }, Checking: func(string, int64) {}}
	path := populated(t)
	if err := bolt.Verify(t.Context(), path+".missing", unexpected); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("verify a missing file: %v", err)
	}
	e := reopen(t, path)
	if err := bolt.Verify(t.Context(), path, unexpected); !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("verify a file in use: %v", err)
	}
	closeEngine(t, e)
	damage(t, path, put(number(1000), []byte("meta"), []byte("format")))
	if err := bolt.Verify(t.Context(), path, unexpected); err == nil || !strings.Contains(err.Error(), "format 1000") {
		t.Errorf("verify a newer format: %v", err)
	}
}
