// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// pastServers are the kinds of servers that differ in how the past is read.
var pastServers = map[string]map[string]string{
	"any object":          {"uploadpack.allowAnySHA1InWant": "true"},
	"any, no filters":     {"uploadpack.allowAnySHA1InWant": "true", "uploadpack.allowFilter": "false"},
	"commits":             {"uploadpack.allowReachableSHA1InWant": "true"},
	"commits, no filters": {"uploadpack.allowReachableSHA1InWant": "true", "uploadpack.allowFilter": "false"},
	"tips":                {},
	"tips, no filters":    {"uploadpack.allowFilter": "false"},
}

// pastRepository is a repository with a few commits, and each version of its file.
type pastRepository struct {
	repository

	commits []string
}

// version returns the content of the file in commit i.
func version(i int) string {
	return strings.Repeat("the same text over and over\n", 60) + fmt.Sprint("version: ", i, "\n")
}

func newPastRepository(t *testing.T, settings map[string]string) pastRepository {
	t.Helper()
	r := pastRepository{repository: newRepository(t)}
	for key, value := range settings {
		r.git("config", key, value)
	}
	w := r.clone()
	w.write("other/readme", "none of the folder's")
	for i := range 6 {
		if w.write("a/c", fmt.Sprint(i)); i > 0 {
			w.write("a/b/file", version(i))
			w.write("a/b/"+fmt.Sprint("since-", i), "x")
		}
		r.commits = append(r.commits, w.push(fmt.Sprint("commit ", i)))
	}
	r.git("gc", "--quiet")
	return r
}

// forPastServers runs a test on each kind of server.
func forPastServers(t *testing.T, test func(t *testing.T, r pastRepository, remote *gitrepo.Remote)) {
	t.Helper()
	for name, settings := range pastServers {
		t.Run(name, func(t *testing.T) {
			r := newPastRepository(t, settings)
			test(t, r, newRemote(t, r.serve(plain)))
		})
	}
}

func hashesOf(history []gitrepo.PastCommit) []string {
	var hashes []string
	for _, commit := range history {
		hashes = append(hashes, commit.Hash.String())
	}
	return hashes
}

func TestHistory(t *testing.T) {
	forPastServers(t, func(t *testing.T, r pastRepository, remote *gitrepo.Remote) {
		history, err := remote.History(t.Context(), "main", nil)
		if err != nil || !slices.Equal(hashesOf(history), r.commits) {
			t.Fatalf("history %v, %v; want %v", hashesOf(history), err, r.commits)
		}
		want := strings.Fields(r.git("log", "--first-parent", "--reverse", "--format=%ct/%at", "main"))
		for i, commit := range history {
			if fmt.Sprintf("%d/%d", commit.Time.Unix(), commit.Authored.Unix()) != want[i] || i > 0 && commit.Parent != history[i-1].Hash {
				t.Errorf("commit %d: %+v, want time %s", i, commit, want[i])
			}
		}
		if again, err := remote.History(t.Context(), "main", history); err != nil || &again[0] != &history[0] {
			t.Errorf("unmoved branch: %d commits, %v; want the known ones", len(again), err)
		}
		w := r.clone()
		w.git("checkout", "-q", "-b", "side", "HEAD~2")
		w.write("side", "1")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "side")
		w.git("checkout", "-q", "main")
		w.git("merge", "-q", "--no-ff", "-m", "merge", "side")
		w.write("later", "1")
		w.push("later")
		moved, err := remote.History(t.Context(), "main", history)
		want = strings.Fields(r.git("rev-list", "--first-parent", "--reverse", "main"))
		if err != nil || !slices.Equal(hashesOf(moved), want) {
			t.Errorf("after a merge %v, %v; want %v", hashesOf(moved), err, want)
		}
		r.git("update-ref", "refs/heads/main", r.commits[2])
		back, err := remote.History(t.Context(), "main", moved)
		if err != nil || !slices.Equal(hashesOf(back), r.commits[:3]) {
			t.Errorf("after a rewrite %v, %v; want %v", hashesOf(back), err, r.commits[:3])
		}
		if none, err := remote.History(t.Context(), "none", nil); err != nil || none != nil {
			t.Errorf("branch that does not exist: %v, %v", none, err)
		}
	})
}

func TestPastTree(t *testing.T) {
	forPastServers(t, func(t *testing.T, r pastRepository, remote *gitrepo.Remote) {
		last := len(r.commits) - 1
		for i, commit := range r.commits {
			at := gitrepo.Past{Branch: "main", Commit: gitrepo.ParseHash(commit), Behind: last - i}
			read, tree, err := remote.Tree(t.Context(), at, "a/b")
			if err != nil || read.Hash != at.Commit {
				t.Fatalf("commit %d: %+v, %v", i, read, err)
			}
			want := strings.Fields(r.git("ls-tree", "-r", "--name-only", commit, "a/b/"))
			var got []string
			_ = tree.Walk("a/b", func(path string, _ gitrepo.Hash) error {
				got = append(got, path)
				return nil
			})
			if !slices.Equal(got, want) {
				t.Errorf("commit %d: files %v, want %v", i, got, want)
			}
			if files := tree.Len("other"); files != 0 {
				t.Errorf("commit %d: %d files outside the folder", i, files)
			}
			for path, exists := range map[string]bool{"a/b/file": i > 0, "a/c": true, "a/b": false, "a/b/none": false, "none/file": false, "a/c/d": false} {
				file, err := remote.File(t.Context(), at, path)
				if err != nil || file.IsZero() == exists || exists && file.String() != strings.TrimSpace(r.git("rev-parse", commit+":"+path)) {
					t.Errorf("commit %d: file %s: %v, %v", i, path, file, err)
				}
			}
		}
		tip, err := remote.Tip(t.Context(), "main")
		if err != nil || tip.String() != r.commits[last] {
			t.Errorf("tip %s, %v", tip, err)
		}
		if read, tree, err := remote.Tree(t.Context(), gitrepo.Past{Branch: "main"}, ""); err != nil || read.Hash != tip || tree.Len("") < 6 {
			t.Errorf("at the tip: %+v, %v", read, err)
		}
		if read, tree, err := remote.Tree(t.Context(), gitrepo.Past{Branch: "none"}, ""); err != nil || !read.Hash.IsZero() || tree.Len("") != 0 {
			t.Errorf("branch that does not exist: %+v, %v", read, err)
		}
	})
}

func TestPastBlobs(t *testing.T) {
	forPastServers(t, func(t *testing.T, r pastRepository, remote *gitrepo.Remote) {
		first, second := gitrepo.BlobHash([]byte(version(2))), gitrepo.BlobHash([]byte(version(3)))
		at := gitrepo.Past{Branch: "main", Commit: gitrepo.ParseHash(r.commits[3]), Behind: 2}
		for name, options := range map[string]gitrepo.BlobsOptions{
			"where the commit is":       {Past: at, Parent: true},
			"where the commit could be": {Past: gitrepo.Past{Branch: "main", Commit: at.Commit}, Parent: true, Whole: true},
		} {
			got, err := remote.Blobs(t.Context(), options, first, second)
			if err != nil || got.More || len(got.Found) != 2 || string(got.Found[first]) != version(2) || string(got.Found[second]) != version(3) {
				t.Errorf("%s: %d blobs, %v", name, len(got.Found), err)
			}
		}
		got, err := remote.Blobs(t.Context(), gitrepo.BlobsOptions{Past: at, Whole: true}, gitrepo.BlobHash([]byte("none")))
		if err != nil || len(got.Found) != 0 {
			t.Errorf("a blob that does not exist: %v, %v", got, err)
		}
		if got, err := remote.Blobs(t.Context(), gitrepo.BlobsOptions{Past: at}); err != nil || len(got.Found) != 0 {
			t.Errorf("no blobs: %v, %v", got, err)
		}
	})
}

// TestScanOfHistoryIsBounded asks a server that serves nothing by hash for a blob that it does not have.
func TestScanOfHistoryIsBounded(t *testing.T) {
	r := newPastRepository(t, pastServers["tips"])
	remote := newRemote(t, r.serve(plain))
	options := gitrepo.BlobsOptions{Past: gitrepo.Past{Branch: "main", Commit: gitrepo.ParseHash(r.commits[3])}, Whole: true}
	if read, err := remote.Blobs(t.Context(), options, gitrepo.BlobHash([]byte("none"))); err != nil || len(read.Found) > 0 {
		t.Fatalf("%v, %v", read, err)
	}
	remote.Limits.PastFiles = 100
	_, err := remote.Blobs(t.Context(), options, gitrepo.BlobHash([]byte("none")))
	var failure *gitrepo.Error
	if !errors.As(err, &failure) || failure.Kind != gitrepo.TooLarge {
		t.Errorf("error %v, want TooLarge", err)
	}
}

// TestLargeBlobs reads blobs of the size of the largest objects, more than one call returns, and one that is too large for an object.
func TestLargeBlobs(t *testing.T) {
	for name, settings := range pastServers {
		if name != "any object" && name != "tips" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			for key, value := range settings {
				r.git("config", key, value)
			}
			r.git("config", "core.compression", "0")
			r.git("config", "core.bigFileThreshold", "1m")
			w := r.clone()
			w.git("config", "core.compression", "0")
			w.git("config", "core.bigFileThreshold", "1m")
			random := rand.NewChaCha8([32]byte{})
			content := func(size int) []byte {
				data := make([]byte, size)
				_, _ = random.Read(data)
				return data
			}
			var hashes []gitrepo.Hash
			for i := range 4 {
				large := content(3 << 20)
				hashes = append(hashes, gitrepo.BlobHash(large))
				w.write(fmt.Sprint("large-", i), string(large))
			}
			huge := content(gitrepo.MaxBlob + 1)
			w.write("huge", string(huge))
			commit := w.push("large")
			remote := newRemote(t, r.serve(plain))
			remote.Limits.Memory = 32 << 20
			options := gitrepo.BlobsOptions{Past: gitrepo.Past{Branch: "main", Commit: gitrepo.ParseHash(commit)}}
			read := map[gitrepo.Hash]bool{}
			for calls := 0; len(read) < len(hashes); calls++ {
				var missing []gitrepo.Hash
				for _, hash := range hashes {
					if !read[hash] {
						missing = append(missing, hash)
					}
				}
				got, err := remote.Blobs(t.Context(), options, missing...)
				if err != nil || calls > 3 {
					t.Fatalf("call %d: %v", calls, err)
				}
				if got.More != (len(got.Found) < len(missing)) {
					t.Errorf("%d of %d blobs, more %v", len(got.Found), len(missing), got.More)
				}
				for hash := range got.Found {
					read[hash] = true
				}
			}
			got, err := remote.Blobs(t.Context(), options, gitrepo.BlobHash(huge), hashes[0])
			if err != nil || got.More || len(got.Found) != 1 {
				t.Errorf("with a blob that is too large: %d blobs, more %v, %v", len(got.Found), got.More, err)
			}
		})
	}
}

// TestPastOverSSH reads the past over SSH.
func TestPastOverSSH(t *testing.T) {
	r := newPastRepository(t, pastServers["any object"])
	key, public := clientKey(t, "")
	server := newSSHServer(t, public)
	remote := newRemote(t, server.url(r.path))
	remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
	history, err := remote.History(t.Context(), "main", nil)
	if err != nil || !slices.Equal(hashesOf(history), r.commits) {
		t.Fatalf("history %v, %v", hashesOf(history), err)
	}
	at := gitrepo.Past{Branch: "main", Commit: history[2].Hash, Behind: 3}
	if _, tree, err := remote.Tree(t.Context(), at, "a/b"); err != nil || tree.Len("a/b") != 3 {
		t.Errorf("tree: %v", err)
	}
	blob := gitrepo.BlobHash([]byte(version(2)))
	got, err := remote.Blobs(t.Context(), gitrepo.BlobsOptions{Past: at}, blob)
	if err != nil || !bytes.Equal(got.Found[blob], []byte(version(2))) {
		t.Errorf("blob: %v", err)
	}
}

// TestPastThatCannotBeRead checks the errors of names and servers that are not valid.
func TestPastThatCannotBeRead(t *testing.T) {
	remote := newRemote(t, "http://127.0.0.1:1/none.git")
	remote.Limits.Time = time.Minute
	kindOf := func(err error) gitrepo.Kind {
		var failure *gitrepo.Error
		if !errors.As(err, &failure) {
			t.Errorf("error %v", err)
			return ""
		}
		return failure.Kind
	}
	for branch, want := range map[string]gitrepo.Kind{"": gitrepo.Invalid, "a b": gitrepo.Invalid, "main": gitrepo.Unreachable} {
		at := gitrepo.Past{Branch: branch}
		_, tipError := remote.Tip(t.Context(), branch)
		_, historyError := remote.History(t.Context(), branch, nil)
		_, _, treeError := remote.Tree(t.Context(), at, "a")
		_, fileError := remote.File(t.Context(), at, "a/c")
		_, blobsError := remote.Blobs(t.Context(), gitrepo.BlobsOptions{Past: at}, gitrepo.BlobHash(nil))
		for _, err := range []error{tipError, historyError, treeError, fileError, blobsError} {
			if got := kindOf(err); got != want {
				t.Errorf("branch %q: %s, want %s", branch, got, want)
			}
		}
	}
	if _, _, err := remote.Tree(t.Context(), gitrepo.Past{Branch: "main"}, "a/../b"); kindOf(err) != gitrepo.Invalid {
		t.Errorf("folder that leads upwards: %v", err)
	}
}
