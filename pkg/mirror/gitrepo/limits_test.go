// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// incompressible returns random bytes, which do not compress.
func incompressible(size int) string {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // Reads do not fail.
	return string(content)
}

// TestMultiAckRequired uses a server that, like Azure DevOps, serves only clients that request multi_ack.
func TestMultiAckRequired(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.first("a", "a\n")
	var fetches atomic.Int64
	branch := load(t, newRemote(t, r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/git-upload-pack") {
				body, _ := io.ReadAll(request.Body)
				request.Body = io.NopCloser(bytes.NewReader(body))
				if wants, _, _ := bytes.Cut(body, []byte("\n")); !bytes.Contains(wants, []byte(" multi_ack")) {
					http.Error(response, "multi_ack is required", http.StatusBadRequest)
					return
				}
				fetches.Add(1)
			}
			next.ServeHTTP(response, request)
		})
	})), gitrepo.Options{})
	refreshed(t, r, branch)
	w.write("b", "theirs")
	w.push("theirs")
	refreshed(t, r, branch)
	stage(t, branch, set("a", "ours"))
	push(t, branch)
	w.git("pull", "--quiet", "origin", "main")
	w.write("b", "again")
	w.push("again")
	refreshed(t, r, branch)
	if fetches.Load() != 3 {
		t.Errorf("%d fetches, want 3", fetches.Load())
	}
	r.fsck()
}

// TestDefaultMaxPackBytes pushes more than fits into one pack, and one commit that is larger than a pack may be.
func TestDefaultMaxPackBytes(t *testing.T) {
	r := newRepository(t)
	var sizes []int64
	branch := load(t, newRemote(t, r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/git-receive-pack") {
				sizes = append(sizes, request.ContentLength)
			}
			next.ServeHTTP(response, request)
		})
	})), gitrepo.Options{})
	content := incompressible(6 << 20)
	for i := range 4 {
		stage(t, branch, set(fmt.Sprint("f", i), fmt.Sprint(i)+content))
	}
	stage(t, branch, set("large", content+content+content))
	if accepted := push(t, branch); len(accepted) != 5 {
		t.Errorf("%d commits accepted", len(accepted))
	}
	if len(sizes) != 3 {
		t.Errorf("%d pushes, of %d bytes; want two with two commits each and one with the large commit", len(sizes), sizes)
	}
	for _, size := range sizes[:len(sizes)-1] {
		if size > gitrepo.DefaultMaxPackBytes {
			t.Errorf("push of %d bytes exceeds the limit", size)
		}
	}
	if got := strings.Fields(r.git("log", "--format=%s", "--name-only", "--reverse", "main")); strings.Join(got, " ") !=
		"change f0 change f1 change f2 change f3 change large" {
		t.Errorf("commits: %q", got)
	}
	r.fsck()
}

// TestLargeHistoryRewrite fetches a rewritten history from a server that cannot omit blobs. The new commits exceed the limit,
// so that only the tip is fetched.
func TestLargeHistoryRewrite(t *testing.T) {
	r := newRepository(t)
	r.git("config", "uploadpack.allowFilter", "false")
	w := r.clone()
	w.first("a", "a\n")
	var depths []bool
	branch := load(t, newRemote(t, r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodPost {
				body, _ := io.ReadAll(request.Body)
				request.Body = io.NopCloser(bytes.NewReader(body))
				depths = append(depths, bytes.Contains(body, []byte("deepen 1")))
			}
			next.ServeHTTP(response, request)
		})
	})), gitrepo.Options{})
	w.git("checkout", "--quiet", "--orphan", "rewritten")
	content := incompressible(66 << 20)
	if err := os.WriteFile(filepath.Join(w.path, "large"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git("config", "core.compression", "0")
	r.git("config", "core.compression", "0")
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message", "large")
	w.git("rm", "--quiet", "large")
	w.write("b", "small")
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message", "without")
	w.git("push", "--quiet", "--force", "origin", "HEAD:main")
	depths = nil
	refreshed(t, r, branch)
	if fmt.Sprint(depths) != "[false true]" {
		t.Errorf("fetches with a depth of one: %v, want the new commits and then the tip", depths)
	}
	stage(t, branch, set("c", "ours"))
	push(t, branch)
	if got := r.git("ls-tree", "--name-only", "main"); got != "a\nb\nc\n" {
		t.Errorf("files: %q", got)
	}
}
