// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// indexes reports whether git index-pack, with these options, accepts the pack without other objects.
func indexes(t *testing.T, pack []byte, options ...string) bool {
	t.Helper()
	repository := filepath.Join(t.TempDir(), "objects.git")
	run(t, "", "git", "init", "--quiet", "--bare", repository)
	command := exec.CommandContext(t.Context(), "git", append([]string{"index-pack", "--stdin"}, options...)...)
	command.Dir = repository
	command.Stdin = bytes.NewReader(pack)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Logf("git index-pack: %s", output)
	}
	return err == nil
}

// TestPacks captures pushed packs and indexes them with git index-pack.
func TestPacks(t *testing.T) {
	r := newRepository(t)
	var packs [][]byte
	url := r.serve(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			body, _ := io.ReadAll(request.Body)
			request.Body = io.NopCloser(bytes.NewReader(body))
			if at := bytes.Index(body, []byte("PACK\x00")); at >= 0 {
				packs = append(packs, body[at:])
			}
			next.ServeHTTP(response, request)
		})
	})
	branch := load(t, newRemote(t, url), gitrepo.Options{})
	var changes []gitrepo.Change
	for i := range 3000 {
		changes = append(changes, set(fmt.Sprintf("flat/%04d.yaml", i), fmt.Sprint("content ", i)))
	}
	stage(t, branch, changes...)
	for i := range 100 { // More than one chain of deltas.
		stage(t, branch, set(fmt.Sprintf("flat/%04d.yaml", i*29), "changed"), set(fmt.Sprintf("flat/n%d", i), "new"))
	}
	push(t, branch)
	if !indexes(t, packs[0], "--strict") {
		t.Error("git index-pack rejects the pack")
	}
	chains := r.git("verify-pack", "-v", packIndex(t, r))
	if !strings.Contains(chains, "chain length = 40: ") || strings.Contains(chains, "chain length = 41") {
		_, summary, _ := strings.Cut(chains, "non delta")
		t.Errorf("longest delta chain is not 40:\n%s", summary)
	}
	stage(t, branch, set("flat/0007.yaml", "after the push"))
	push(t, branch)
	if size := len(packs[1]); size > 2<<10 {
		t.Errorf("pack of one change in a folder of 3000 files has %d bytes", size)
	}
	r.fsck()
}

func packIndex(t *testing.T, r repository) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.path, "objects/pack/*.idx"))
	if err != nil || len(found) == 0 {
		t.Fatalf("packs %v, error %v", found, err)
	}
	return found[0]
}

func TestCommitMetadata(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	commit := gitrepo.Commit{
		Author: gitrepo.Signature{
			Name: " .\"system:serviceaccount:<shop>\n:web' ;", Email: "web@\x00example.com>",
			When: time.Date(2024, 5, 6, 7, 8, 9, 10, time.FixedZone("", -(3*60+30)*60)),
		},
		Committer: gitrepo.Signature{Name: "", Email: "", When: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)},
		Message:   "[UPDATE] ünïcode \xff\n\nbody\x00\n\nX-Trailer-One: 1\nX-Trailer-Two: 2\n\n\n",
		Changes:   []gitrepo.Change{set("a", "a")},
	}
	if _, _, err := branch.Stage(commit); err != nil {
		t.Fatal(err)
	}
	push(t, branch)
	r.fsck()
	for format, want := range map[string]string{
		"%an|%ae|%aI": "system:serviceaccount:shop:web|web@example.com|2024-05-06T07:08:09-03:30",
		"%cn|%ce|%cI": "unknown||2024-05-06T07:08:09+00:00",
		"%s":          "[UPDATE] ünïcode \uFFFD",
		"%(trailers)": "X-Trailer-One: 1\nX-Trailer-Two: 2\n",
	} {
		if got := strings.TrimSuffix(r.git("show", "--no-patch", "--format="+format, "main"), "\n"); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

// TestSignedCommit signs with ssh-keygen, as git does.
func TestSignedCommit(t *testing.T) {
	r := newRepository(t)
	key := filepath.Join(t.TempDir(), "key")
	run(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	commit := commitOf("signed", set("a", "a"))
	commit.Sign = func(content []byte) (string, error) {
		return runInput(t, "", string(content), "ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", key), nil
	}
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	if _, _, err := branch.Stage(commit); err != nil {
		t.Fatal(err)
	}
	push(t, branch)
	r.fsck()
	allowed := filepath.Join(t.TempDir(), "allowed")
	run(t, "", "sh", "-c", `printf 'bot@example.com %s\n' "$(cat "$1")" > "$2"`, "sh", key+".pub", allowed)
	r.git("-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "main")
}

func TestSigningError(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	kept := stage(t, branch, set("kept", "x"))
	commit := commitOf("signed", set("a", "a"))
	commit.Sign = func([]byte) (string, error) { return "", io.ErrNoProgress }
	if _, committed, err := branch.Stage(commit); committed || err == nil {
		t.Errorf("committed %v, error %v", committed, err)
	}
	if accepted := push(t, branch); len(accepted) != 1 || accepted[0] != kept {
		t.Errorf("accepted %v, want %s", accepted, kept)
	}
}
