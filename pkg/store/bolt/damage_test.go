// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// largeStore returns the content of a closed store in which every bucket has several pages. Some values span several pages,
// and a part of the history is compacted.
func largeStore(t *testing.T) []byte {
	t.Helper()
	path := populated(t)
	e := reopen(t, path)
	for i := range 300 {
		set(t, e, fmt.Sprintf("/largeStore/%03d/%03d", i%40, i), strings.Repeat(string(rune('a'+i%26)), 20+i%150))
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: e.Revision() - 150}); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		set(t, e, fmt.Sprintf("/large/%d", i), strings.Repeat("x", 3000*i))
		unset(t, e, fmt.Sprintf("/largeStore/%03d/%03d", i, i))
	}
	closeEngine(t, e)
	if _, err := bolt.Defragment(t.Context(), path); err != nil { // Leave almost no free pages.
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// storedKeys returns all keys and values of a store.
func storedKeys(t *testing.T, path string) (values map[string]string, err error) {
	t.Helper()
	e, err := bolt.Open(t.Context(), path, bolt.Options{CompactionInterval: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		return nil, err
	}
	values = map[string]string{}
	for _, kv := range response.Kvs {
		values[string(kv.Key)] = string(kv.Value)
	}
	return values, nil
}

// checkDamage verifies and opens a damaged store. Both must return, however the file is damaged. If Verify finds nothing,
// the store must have its previous content, except for values whose history is compacted.
func checkDamage(t *testing.T, path, name string, content []byte, before map[string]string) (findings int) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	err := bolt.Verify(t.Context(), path, bolt.Verification{
		Found:    func(bolt.Finding) { findings++ },
		Checking: func(string, int64) {},
	})
	if err != nil && !strings.Contains(err.Error(), "use the version that wrote it") {
		t.Errorf("%s: Verify returned %v", name, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil { // Verify opens the store, which may write to it.
		t.Fatal(err)
	}
	after, openErr := storedKeys(t, path)
	if findings > 0 || err != nil {
		return findings + 1
	}
	if openErr != nil || !slices.Equal(slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before))) {
		t.Errorf("%s: Verify found nothing, but the store has %d keys, want %d (%v)", name, len(after), len(before), openErr)
	}
	for key, value := range after {
		if strings.HasPrefix(key, "/large/") && value != before[key] {
			t.Errorf("%s: Verify found nothing, but the value of %s changed", name, key)
		}
	}
	return findings
}

func TestDamagedBits(t *testing.T) {
	t.Parallel() // It mostly waits for the disk.
	sound := largeStore(t)
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := storedKeys(t, path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	try := func(name string, content []byte) { found += min(1, checkDamage(t, path, name, content, before)) }

	page, random := os.Getpagesize(), rand.New(rand.NewPCG(17, 7))
	for at := 0; at < len(sound) && at < 60*page; at += page {
		for _, field := range []struct{ offset, size int }{{0, 8}, {8, 2}, {10, 2}, {12, 4}} { // The fields of a page header.
			content, i := bytes.Clone(sound), at+field.offset+random.IntN(field.size)
			content[i] ^= byte(1) << random.IntN(8)
			try(fmt.Sprintf("byte %d of page %d changed", i-at, at/page), content)
		}
	}
	for range 350 {
		content := bytes.Clone(sound)
		at, bit := random.IntN(len(content)), byte(1)<<random.IntN(8)
		content[at] ^= bit
		try(fmt.Sprintf("bit %#x of byte %d changed", bit, at), content)
	}
	for range 120 {
		content := bytes.Clone(sound)
		at := random.IntN(len(content) - 64)
		for i := range 1 + random.IntN(64) {
			content[at+i] = byte(random.Uint32())
		}
		try(fmt.Sprintf("random bytes from %d", at), content)
	}
	for range 20 {
		at := random.IntN(len(sound))
		try(fmt.Sprintf("cut off at %d", at), sound[:at])
	}
	if found < 200 {
		t.Errorf("only %d damaged files were detected", found)
	}
}

// TestDamagedTree creates damage that a flipped bit rarely causes: trees in which a reader would loop forever or read
// outside the mapped file. Opening such a store must return an error.
func TestDamagedTree(t *testing.T) {
	sound := largeStore(t)
	page := os.Getpagesize()
	order := binary.NativeEndian
	branch := branchPage(t, sound)
	for name, test := range map[string]struct {
		damage func(raw []byte)
		want   string
	}{
		"a branch that refers to itself": {func(raw []byte) { order.PutUint64(raw[branch*page+16+8:], uint64(branch)) }, "is in use elsewhere"},
		"two entries with one page": {
			func(raw []byte) { copy(raw[branch*page+32+8:][:8], raw[branch*page+16+8:][:8]) }, "is in use elsewhere",
		},
		"a page far beyond the file": {
			func(raw []byte) { order.PutUint64(raw[branch*page+16+8:], 1<<60) }, "refers to page 1152921504606846976",
		},
		"an empty branch": {func(raw []byte) { order.PutUint16(raw[branch*page+10:], 0) }, "is a branch without entries"},
		"a page with a huge overflow": {
			func(raw []byte) { order.PutUint32(raw[branch*page+12:], 1<<31) }, "continues for 2147483648 more pages",
		},
		"a key that is too long": {func(raw []byte) { order.PutUint32(raw[branch*page+16+4:], 1<<31) }, "lies beyond the page's end"},
		"an empty key":           {func(raw []byte) { order.PutUint32(raw[branch*page+16+4:], 0) }, "has a key of 0 bytes"},
		"keys that are not in order": {
			func(raw []byte) { copy(raw[branch*page+32:][:8], raw[branch*page+16:][:8]); shift(raw, branch) }, "is not in order",
		},
		"a root that is not a bucket": {func(raw []byte) { order.PutUint32(raw[rootPage(raw)*page+16:], 0) }, "the bucket is missing"},
		"a root without bucket names": {func(raw []byte) { order.PutUint16(raw[rootPage(raw)*page+10:], 0) }, "meta: the bucket is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			raw := bytes.Clone(sound)
			test.damage(raw)
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if found := verify(t, path); len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
			_, err := bolt.Open(t.Context(), path, bolt.Options{})
			if !errors.Is(err, bolt.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "restore a backup") {
				t.Errorf("Open returned %v, want %q", err, test.want)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, raw) {
				t.Errorf("Open modified the damaged file (%v)", err)
			}
		})
	}
}

// TestCanceledPageCheck checks that canceling the context stops the check of pages.
func TestCanceledPageCheck(t *testing.T) {
	raw := largeStore(t)
	binary.NativeEndian.PutUint16(raw[branchPage(t, raw)*os.Getpagesize()+10:], 0)
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bolt.Open(ctx, path, bolt.Options{}); !errors.Is(err, context.Canceled) || errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("Open returned %v", err)
	}
}

// TestPanicsWhileReading checks that panics of bbolt and memory faults are reported as damage, and that panics of the
// caller's code are not.
func TestPanicsWhileReading(t *testing.T) {
	e := reopen(t, populated(t))
	defer closeEngine(t, e)
	var none map[string]bool
	var missing *bbolt.Bucket
	in := func(read func(tx *bbolt.Tx) error) func() error { return func() error { return e.DB().View(read) } }
	each := func(visit func()) func() error {
		return in(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("keys")).ForEach(func([]byte, []byte) error {
				visit()
				return nil
			})
		})
	}
	mapped, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(mapped); err != nil {
			t.Error(err)
		}
	}()
	for name, test := range map[string]struct {
		read   func() error
		damage bool
	}{
		"a memory fault":             {each(func() { none[string(mapped[:1])] = true }), true},
		"an assertion of bbolt":      {in(func(tx *bbolt.Tx) error { return tx.Commit() }), true},
		"a nil pointer in bbolt":     {in(func(*bbolt.Tx) error { missing.Get([]byte("x")); return nil }), true},
		"a nil map of a reader":      {each(func() { none["x"] = true }), false},
		"an index of a reader":       {each(func() { _ = make([]int, len(none))[len(none)] }), false},
		"a nil pointer of a reader":  {each(func() { _ = *(*int)(nil) }), false},
		"a message of a reader":      {each(func() { panic("panic of a reader") }), false},
		"an index below a reader":    {each(func() { binary.BigEndian.Uint64(nil) }), false},
		"a reader outside of bbolt":  {func() error { none["x"] = true; return nil }, false},
		"a reader within two guards": {func() error { return bolt.Guarded(func() error { none["x"] = true; return nil }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			cause := func() (cause any) {
				defer func() { cause = recover() }()
				err = bolt.Guarded(test.read)
				return nil
			}()
			if test.damage && (cause != nil || !errors.Is(err, bolt.ErrDamaged)) || !test.damage && (cause == nil || err != nil) {
				t.Errorf("Guarded returned %v and panicked with %v", err, cause)
			}
		})
	}
}

// shift moves the key of the second entry of a branch to that of the first one.
func shift(raw []byte, branch int) {
	at := branch*os.Getpagesize() + 32
	binary.NativeEndian.PutUint32(raw[at:], binary.NativeEndian.Uint32(raw[at:])-16)
}

// branchPage returns the number of a branch page of the file.
func branchPage(t *testing.T, raw []byte) (id int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		id = int(tx.Bucket([]byte("keys")).Root())
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if kind := binary.NativeEndian.Uint16(raw[id*os.Getpagesize()+8:]); kind != 1 {
		t.Fatalf("root page %d of the keys bucket has kind %#x", id, kind)
	}
	return id
}

// TestUnreadableRecord lists, deletes and expires keys with damaged records.
func TestUnreadableRecord(t *testing.T) {
	path := populated(t)
	damage(t, path, func(tx *bbolt.Tx) error {
		return errors.Join(put([]byte{0x80}, []byte("keys"), []byte("/a/1"))(tx), put([]byte{0x80}, []byte("keys"), []byte("/b/leased"))(tx))
	})
	e := reopen(t, path)
	if got := read(t, e, "/", 0); !strings.Contains(got, "/a/1=\x80@1/1.1") || !strings.Contains(got, "/a/3=once") ||
		!strings.Contains(got, "/c/2=x") {
		t.Errorf("keys = %q", got)
	}
	unset(t, e, "/a/1")
	if _, err := e.Revoke(t.Context(), &pb.LeaseRevokeRequest{ID: 77}); err != nil {
		t.Errorf("revoking the lease of a damaged key: %v", err)
	}
	unset(t, e, "/b/leased")
	set(t, e, "/a/1", "anew")
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: e.Revision()}); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("Verify after the damaged keys were deleted: %q", found)
	}
}
