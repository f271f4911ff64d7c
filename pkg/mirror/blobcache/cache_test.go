// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package blobcache_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

func open(t *testing.T, config blobcache.Config) *blobcache.Cache {
	t.Helper()
	if config.Transformer == nil {
		config.Transformer = identity.NewEncryptCheckTransformer()
	}
	cache, err := blobcache.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func has(cache *blobcache.Cache, blob gitrepo.Hash) bool {
	_, found := cache.Get(blob)
	return found
}

// files returns the paths of the cache's files.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestContentsAndNotesOutliveTheProcess(t *testing.T) {
	dir, content := t.TempDir(), []byte("kind: Deployment\n")
	blob, empty := gitrepo.BlobHash(content), gitrepo.BlobHash(nil)
	first := open(t, blobcache.Config{Dir: dir})
	first.PutNoted(blob, content, []byte("by jane"))
	first.Put(empty, nil)

	next := open(t, blobcache.Config{Dir: dir})
	got, note, found := next.GetNoted(blob)
	if !found || !bytes.Equal(got, content) || string(note) != "by jane" {
		t.Errorf("got %q, note %q, found %t", got, note, found)
	}
	if got, found := next.Get(empty); !found || len(got) > 0 {
		t.Errorf("empty content: got %q, found %t", got, found)
	}
	next.PutNoted(blob, content, []byte("by bob"))
	if _, note, _ := next.GetNoted(blob); string(note) != "by bob" {
		t.Errorf("the note is %q", note)
	}
	other := gitrepo.BlobHash([]byte("other"))
	if _, found := next.Get(other); found || next.HasNoted(other) || !next.HasNoted(blob) {
		t.Error("the cache has what was not put into it, or lacks what was")
	}
	if _, _, found := next.GetNoted(empty); found || next.HasNoted(empty) {
		t.Error("a content that was put without a note has one")
	}
	next.PutNoted(other, nil, []byte("of a Secret"))
	if content, note, found := next.GetNoted(other); !found || content != nil || string(note) != "of a Secret" {
		t.Errorf("only a note: got %q, %q, found %t", content, note, found)
	}
	if _, found := next.Get(other); found {
		t.Error("a blob with a note only has a content")
	}
	if got, found := next.Get(blob); !found || !bytes.Equal(got, content) {
		t.Errorf("without its note: got %q, found %t", got, found)
	}
}

// TestDamagedFilesAreMisses damages a file in every way that a crash may.
func TestDamagedFilesAreMisses(t *testing.T) {
	content := bytes.Repeat([]byte("replicas: 3\n"), 50)
	blob := gitrepo.BlobHash(content)
	for name, damage := range map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(stored []byte) []byte { return stored[:len(stored)/2] },
		"zeros":     func(stored []byte) []byte { return make([]byte, len(stored)) },
		"one bit":   func(stored []byte) []byte { stored[len(stored)-3] ^= 4; return stored },
		"too large": func([]byte) []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cache := open(t, blobcache.Config{Dir: dir})
			cache.Put(blob, content)
			path := files(t, dir)[0]
			stored, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(stored), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, found := cache.Get(blob); found {
				t.Errorf("got %q", got)
			}
			cache.Put(blob, content)
			if _, found := cache.Get(blob); !found {
				t.Error("it cannot be replaced")
			}
		})
	}
}

// TestLeastRecentlyUsedAreRemoved fills a cache of ten blocks.
func TestLeastRecentlyUsedAreRemoved(t *testing.T) {
	dir := t.TempDir()
	cache := open(t, blobcache.Config{Dir: dir, MaxBytes: 10 * 4096})
	blobOf := func(i int) (gitrepo.Hash, []byte) {
		content := []byte(fmt.Sprintf("n: %d\n", i))
		return gitrepo.BlobHash(content), content
	}
	age := func(i, hours int) {
		blob, _ := blobOf(i)
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, blob.String()[:2], blob.String()[2:]), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		blob, content := blobOf(i)
		cache.Put(blob, content)
		age(i, 100-i)
	}
	oldest, _ := blobOf(0)
	if _, found := cache.Get(oldest); !found {
		t.Fatal("the oldest was removed before the cache is full")
	}
	blob, content := blobOf(10)
	cache.Put(blob, content)
	if n := len(files(t, dir)); n != 8 {
		t.Errorf("%d files are left of 11, want 8", n)
	}
	for i, want := range map[int]bool{0: true, 1: false, 2: false, 3: false, 4: true, 10: true} {
		blob, _ := blobOf(i)
		if has(cache, blob) != want {
			t.Errorf("file %d is in the cache: %t", i, !want)
		}
	}
	next := open(t, blobcache.Config{Dir: dir, MaxBytes: 3 * 4096})
	blob, content = blobOf(11)
	next.Put(blob, content)
	if n := len(files(t, dir)); n > 3 {
		t.Errorf("%d files are left in a smaller cache", n)
	}
}

// TestFilesAreEncrypted looks for a value in the files, and reads them with another key.
func TestFilesAreEncrypted(t *testing.T) {
	dir, content := t.TempDir(), []byte("password: hunter2\n")
	cache := open(t, blobcache.Config{Dir: dir, Transformer: withKey(t, 1)})
	cache.PutNoted(gitrepo.BlobHash(content), content, []byte("hunter3"))
	stored, err := os.ReadFile(files(t, dir)[0])
	if err != nil || bytes.Contains(stored, []byte("hunter")) {
		t.Errorf("stored %q (%v)", stored, err)
	}
	if got, found := cache.Get(gitrepo.BlobHash(content)); !found || !bytes.Equal(got, content) {
		t.Errorf("got %q, found %t", got, found)
	}
	other := open(t, blobcache.Config{Dir: dir, Transformer: withKey(t, 2)})
	if got, found := other.Get(gitrepo.BlobHash(content)); found {
		t.Errorf("with another key: %q", got)
	}
}

func withKey(t *testing.T, first byte) value.Transformer {
	t.Helper()
	key := make([]byte, 32)
	key[0] = first
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	transformer, err := aestransformer.NewGCMTransformer(block)
	if err != nil {
		t.Fatal(err)
	}
	return transformer
}

func TestConcurrentUse(t *testing.T) {
	cache := open(t, blobcache.Config{Dir: t.TempDir(), MaxBytes: 20 * 4096})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 200 {
				content := []byte(fmt.Sprintf("n: %d\n", (i+worker*7)%50))
				blob := gitrepo.BlobHash(content)
				cache.Put(blob, content)
				if got, found := cache.Get(blob); found && !bytes.Equal(got, content) {
					t.Errorf("got %q, want %q", got, content)
				}
			}
		})
	}
	group.Wait()
}

// failing is a Transformer that fails.
type failing struct{ value.Transformer }

func (failing) TransformToStorage(context.Context, []byte, value.Context) ([]byte, error) {
	return nil, os.ErrPermission
}

func TestWhatCannotBeKept(t *testing.T) {
	content := []byte("a: 1\n")
	cache := open(t, blobcache.Config{Dir: t.TempDir(), Transformer: failing{}})
	cache.Put(gitrepo.BlobHash(content), content)
	large := make([]byte, 5<<20)
	whole := open(t, blobcache.Config{Dir: t.TempDir()})
	whole.Put(gitrepo.BlobHash(large), large)
	var none *blobcache.Cache
	none.Put(gitrepo.BlobHash(content), content)
	for name, has := range map[string]bool{
		"without encryption": has(cache, gitrepo.BlobHash(content)), "large": has(whole, gitrepo.BlobHash(large)),
		"nil": none.HasNoted(gitrepo.BlobHash(content)),
	} {
		if has {
			t.Errorf("%s: the cache has it", name)
		}
	}
	if _, found := none.Get(gitrepo.BlobHash(content)); found {
		t.Error("a nil cache has a content")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := blobcache.Open(t.Context(), blobcache.Config{Dir: path}); err == nil {
		t.Error("a file was opened as a folder")
	}
}

func BenchmarkPut(b *testing.B) {
	cache, err := blobcache.Open(b.Context(), blobcache.Config{Dir: b.TempDir(), Transformer: identity.NewEncryptCheckTransformer(), MaxBytes: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	filler := bytes.Repeat([]byte("        image: registry.example.com/shop/api:1.2.3\n"), 40)
	for i := 0; b.Loop(); i++ {
		content := append([]byte(fmt.Sprintf("n: %d\n", i)), filler...)
		cache.Put(gitrepo.BlobHash(content), content)
		cache.Get(gitrepo.BlobHash(content))
	}
}
