// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const branchName = "main"

// native is a bare repository for the git command.
type native struct {
	b    *testing.B
	path string
}

func (n native) git(arguments ...string) string {
	n.b.Helper()
	return n.gitInput(nil, arguments...)
}

func (n native) gitInput(input []byte, arguments ...string) string {
	n.b.Helper()
	command := exec.CommandContext(n.b.Context(), "git", arguments...)
	command.Dir = n.path
	command.Stdin = bytes.NewReader(input)
	command.Env = environment()
	output, err := command.CombinedOutput()
	if err != nil {
		n.b.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// environment excludes the machine's configuration, and disables fsync: CPU time is compared, not the disk. Packs are
// sent without chunks, because the server's CGI does not support them.
func environment() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=core.fsync", "GIT_CONFIG_VALUE_0=none", "GIT_CONFIG_KEY_1=gc.auto", "GIT_CONFIG_VALUE_1=0",
		"GIT_CONFIG_KEY_2=http.postBuffer", "GIT_CONFIG_VALUE_2=1g")
}

// newOrigin creates a repository of the files, with additional commits of one changed file each.
func newOrigin(b *testing.B, paths []string, commits int) native {
	b.Helper()
	origin := native{b: b, path: b.TempDir()}
	origin.git("init", "--quiet", "--bare", "--initial-branch="+branchName)
	stream := appendCommit(nil, "", changesOf(paths, "first"))
	for i := range commits {
		stream = appendCommit(stream, "", changesOf(paths[i%len(paths):][:1], fmt.Sprint("history ", i)))
	}
	origin.gitInput(stream, "fast-import", "--quiet")
	origin.git("repack", "-adq")
	return origin
}

// copy creates a repository with the same objects that allows fetch and push over HTTP.
func (n native) copy() native {
	n.b.Helper()
	target := native{b: n.b, path: filepath.Join(n.b.TempDir(), "copy.git")}
	n.git("clone", "--quiet", "--bare", "--local", n.path, target.path)
	target.git("config", "http.receivepack", "true")
	target.git("config", "uploadpack.allowFilter", "true")
	return target
}

// change is the new content of a file.
type change struct{ path, content string }

// changesOf returns a manifest of about 700 bytes with the mark for each path.
func changesOf(paths []string, mark string) []change {
	changes := make([]change, len(paths))
	for i, path := range paths {
		var content strings.Builder
		fmt.Fprintf(&content, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n", path)
		for line := range 12 {
			fmt.Fprintf(&content, "  key-%02d: value %d of %s, %s\n", line, line*i, path, mark)
		}
		changes[i] = change{path: path, content: content.String()}
	}
	return changes
}

// appendCommit appends a commit to a stream for git fast-import. The parent of the first commit of a stream is a revision;
// "" means the previous commit in the stream, or none.
func appendCommit(stream []byte, from string, changes []change) []byte {
	stream = fmt.Appendf(stream, "commit refs/heads/%s\ncommitter bench <bench@example.com> 1700000000 +0000\ndata 7\nchange\n\n", branchName)
	if from != "" {
		stream = fmt.Appendf(stream, "from %s\n", from)
	}
	for _, change := range changes {
		stream = fmt.Appendf(stream, "M 100644 inline %s\ndata %d\n%s\n", change.path, len(change.content), change.content)
	}
	return append(stream, '\n')
}

// fastImport adds the commits to the branch.
func (n native) fastImport(commits [][]change) {
	n.b.Helper()
	var stream []byte
	from := "refs/heads/" + branchName + "^0"
	for _, changes := range commits {
		stream = appendCommit(stream, from, changes)
		from = ""
	}
	n.gitInput(stream, "fast-import", "--quiet")
}

// server serves a repository with git http-backend and counts the bytes sent to it.
type server struct {
	url      string
	received atomic.Int64
}

func (n native) serve() *server {
	n.b.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(n.git("--exec-path"), "git-http-backend"),
		Env:  append(environment(), "GIT_PROJECT_ROOT="+filepath.Dir(n.path), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bench"),
	}
	s := &server{}
	listening := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/git-receive-pack") {
			s.received.Add(max(request.ContentLength, 0))
		}
		backend.ServeHTTP(response, request)
	}))
	n.b.Cleanup(listening.Close)
	s.url = listening.URL + "/" + filepath.Base(n.path)
	return s
}
