// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// bloated returns a closed store whose file is mostly free pages, and a digest of its content.
func bloated(t *testing.T) (path, content string) {
	t.Helper()
	path = populated(t)
	e := reopen(t, path)
	filling := strings.Repeat("x", 10_000)
	for i := range 300 {
		set(t, e, fmt.Sprintf("/many/%d", i), filling)
	}
	if _, err := e.DeleteRange(t.Context(), &pb.DeleteRangeRequest{Key: []byte("/many/"), RangeEnd: []byte("/many0")}); err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		set(t, e, "/small", fmt.Sprint(i))
	}
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: e.Revision() - 5}); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	return path, contentOf(t, path)
}

// contentOf returns a digest of all buckets and records of a file.
func contentOf(t *testing.T, path string) string {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.New()
	var walk func(depth int, b *bbolt.Bucket) error
	walk = func(depth int, b *bbolt.Bucket) error {
		return b.ForEach(func(key, value []byte) error {
			if _, err := fmt.Fprintf(digest, "%d %q %q\n", depth, key, value); err != nil || value != nil {
				return err
			}
			return walk(depth+1, b.Bucket(key))
		})
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if _, err := fmt.Fprintf(digest, "%q\n", name); err != nil {
				return err
			}
			return walk(1, b)
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

func TestDefragment(t *testing.T) {
	path, content := bloated(t)
	sizes, err := bolt.Defragment(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != sizes.After || sizes.After > sizes.Before/10 {
		t.Errorf("sizes %+v, the file has %d bytes, %v", sizes, info.Size(), err)
	}
	if got := contentOf(t, path); got != content {
		t.Error("content changed")
	}
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	e := reopen(t, path)
	before := e.Revision()
	if got := set(t, e, "/after", "x"); got != before+1 {
		t.Errorf("the next write got revision %d after %d", got, before)
	}
	closeEngine(t, e)
	onlyFile(t, path)
}

// onlyFile fails if a temporary copy is left beside the file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".defrag") {
			t.Errorf("temporary file %s was not removed", entry.Name())
		}
	}
}

func TestDefragmentRefuses(t *testing.T) {
	path, content := bloated(t)
	if _, err := bolt.Defragment(t.Context(), path+".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("defragment a missing file: %v", err)
	}
	if _, err := os.Stat(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("defragment created the missing file: %v", err)
	}
	e := reopen(t, path)
	if _, err := bolt.Defragment(t.Context(), path); !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("defragment a file in use: %v", err)
	}
	closeEngine(t, e)
	if got := contentOf(t, path); got != content {
		t.Error("content changed")
	}
}

// defragmented is the environment variable with the store that a child process defragments.
const defragmented = "SLIPSTREAM_TEST_DEFRAGMENT"

// TestDefragmentKilled kills a process at a random time while it defragments. Either the old or the new file must remain,
// and the next attempt must complete.
func TestDefragmentKilled(t *testing.T) {
	if path := os.Getenv(defragmented); path != "" {
		fmt.Println("started")
		if _, err := bolt.Defragment(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		return
	}
	path, content := bloated(t)
	bloat, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 6
	left := 0
	for range rounds {
		if err := os.WriteFile(path, bloat, 0o600); err != nil {
			t.Fatal(err)
		}
		killDefragmenting(t, path)
		if _, err := os.Stat(path + ".defrag"); err == nil {
			left++
		}
		if got := contentOf(t, path); got != content {
			t.Fatal("content changed")
		}
		if found := verify(t, path); len(found) > 0 {
			t.Fatalf("found %q", found)
		}
	}
	t.Logf("%d of %d processes were killed during the copy", left, rounds)
	if _, err := bolt.Defragment(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, path)
}

func killDefragmenting(t *testing.T, path string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDefragmentKilled$")
	child.Env = append(os.Environ(), defragmented+"="+path)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == "started" {
			time.AfterFunc(rand.N(40*time.Millisecond), func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait() // It was killed, or completed before.
}
