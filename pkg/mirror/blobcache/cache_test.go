// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package blobcache_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

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
	found, err := filepath.Glob(filepath.Join(dir, "*", "*.segment"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestContentsAndNotesOutliveTheProcess(t *testing.T) {
	dir, content := t.TempDir(), []byte("kind: Deployment\n")
	blob, empty := gitrepo.BlobHash(content), gitrepo.BlobHash(nil)
	first := open(t, blobcache.Config{Dir: dir})
	first.PutNoted(blobcache.Noted{Blob: blob, Content: content, Note: []byte("by jane")})
	first.Put(empty, nil)

	next := open(t, blobcache.Config{Dir: dir})
	got, note, found := next.GetNoted(blob)
	if !found || !bytes.Equal(got, content) || string(note) != "by jane" {
		t.Errorf("got %q, note %q, found %t", got, note, found)
	}
	if got, found := next.Get(empty); !found || len(got) > 0 {
		t.Errorf("empty content: got %q, found %t", got, found)
	}
	next.PutNoted(blobcache.Noted{Blob: blob, Content: content, Note: []byte("by bob")})
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
	next.PutNoted(blobcache.Noted{Blob: other, Note: []byte("of a Secret")})
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

// TestDamagedFilesAreMisses damages the file of three contents in every way that a crash may, before the cache is opened and while it is.
func TestDamagedFilesAreMisses(t *testing.T) {
	var contents [3][]byte
	for i := range contents {
		contents[i] = bytes.Repeat(fmt.Appendf(nil, "replicas: %d\n", i), 50)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":          func([]byte) []byte { return nil },
		"cut":            func(stored []byte) []byte { return stored[:len(stored)-7] },
		"cut in header":  func(stored []byte) []byte { return stored[:len(stored)/3*2+9] },
		"zeros":          func(stored []byte) []byte { return make([]byte, len(stored)) },
		"zeros appended": func(stored []byte) []byte { return append(stored[:len(stored)-7], make([]byte, 5000)...) },
		"one bit":        func(stored []byte) []byte { stored[len(stored)-3] ^= 4; return stored },
		"size":           func(stored []byte) []byte { stored[0] = 0xff; return stored },
		"hash":           func(stored []byte) []byte { stored[20]++; return stored },
	} {
		for _, opened := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/opened=%t", name, opened), func(t *testing.T) {
				dir := t.TempDir()
				cache := open(t, blobcache.Config{Dir: dir})
				for _, content := range contents {
					cache.Put(gitrepo.BlobHash(content), content)
				}
				path := files(t, dir)[0]
				stored, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, damage(stored), 0o600); err != nil {
					t.Fatal(err)
				}
				if !opened {
					cache = open(t, blobcache.Config{Dir: dir})
				}
				damaged := 0
				for _, content := range contents {
					got, found := cache.Get(gitrepo.BlobHash(content))
					if found && !bytes.Equal(got, content) {
						t.Errorf("got %q", got)
					}
					if !found {
						damaged++
					}
					cache.Put(gitrepo.BlobHash(content), content)
				}
				if inMemory := opened && name == "size"; damaged == 0 && !inMemory {
					t.Error("nothing was damaged")
				}
				for _, again := range []*blobcache.Cache{cache, open(t, blobcache.Config{Dir: dir})} {
					for i, content := range contents {
						if got, found := again.Get(gitrepo.BlobHash(content)); !opened && (!found || !bytes.Equal(got, content)) {
							t.Errorf("content %d was not replaced: %q", i, got)
						}
					}
				}
			})
		}
	}
}

// TestLongUnusedAreRemoved fills a cache many times, in which some contents are used again and again.
func TestLongUnusedAreRemoved(t *testing.T) {
	dir := t.TempDir()
	const maxBytes = 1 << 20
	config := blobcache.Config{Dir: dir, MaxBytes: maxBytes}
	cache := open(t, config)
	random := rand.New(rand.NewPCG(1, 2))
	contentOf := func() []byte {
		content := make([]byte, 2000) // Random bytes are not compressed.
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		return content
	}
	used, unused, noted := contentOf(), contentOf(), contentOf()
	cache.Put(gitrepo.BlobHash(used), used)
	cache.Put(gitrepo.BlobHash(unused), unused)
	cache.PutNoted(blobcache.Noted{Blob: gitrepo.BlobHash(noted), Content: noted})
	for i := range 2000 {
		content := contentOf()
		cache.Put(gitrepo.BlobHash(content), content)
		if !has(cache, gitrepo.BlobHash(content)) {
			t.Fatalf("content %d was removed at once", i)
		}
		if i%20 == 0 && !has(cache, gitrepo.BlobHash(used)) {
			t.Fatalf("a content that is used was removed after %d others", i)
		}
	}
	if has(cache, gitrepo.BlobHash(unused)) {
		t.Error("a content that was not used is still there")
	}
	if !cache.HasNoted(gitrepo.BlobHash(noted)) {
		t.Error("contents that were read removed one of the mirror")
	}
	sizes := func() (sum int64) {
		for _, path := range files(t, dir) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			sum += info.Size()
		}
		return sum
	}
	if size := sizes(); size > maxBytes || size < maxBytes/8 {
		t.Errorf("the files have %d bytes", size)
	}
	config.MaxBytes = maxBytes / 8
	smaller := open(t, config)
	smaller.Put(gitrepo.BlobHash(unused), unused)
	if size := sizes(); size > config.MaxBytes+4000 {
		t.Errorf("the files of a smaller cache have %d bytes", size)
	}
	if !has(smaller, gitrepo.BlobHash(unused)) {
		t.Error("the smaller cache lacks the newest content")
	}
}

// TestFilesRemovedByOthers removes all files, as an administrator may whose disk is full, while the cache is used.
func TestFilesRemovedByOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "files")
	const maxBytes = 256 << 10
	cache := open(t, blobcache.Config{Dir: dir, MaxBytes: maxBytes})
	random := rand.New(rand.NewPCG(3, 4))
	put := func() {
		content := make([]byte, 1000)
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		cache.Put(gitrepo.BlobHash(content), content)
		if got, found := cache.Get(gitrepo.BlobHash(content)); found && !bytes.Equal(got, content) {
			t.Fatal("another content")
		}
	}
	for range 50 {
		put()
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		put()
	}
	found := files(t, dir)
	if len(found) == 0 || len(found) > 20 {
		t.Errorf("%d files", len(found))
	}
}

// TestFilesAreEncrypted looks for a value in the files, and reads them with another key.
func TestFilesAreEncrypted(t *testing.T) {
	dir, content := t.TempDir(), []byte("password: hunter2\n")
	cache := open(t, blobcache.Config{Dir: dir, Transformer: withKey(t, 1)})
	cache.PutNoted(blobcache.Noted{Blob: gitrepo.BlobHash(content), Content: content, Note: []byte("hunter3")})
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
