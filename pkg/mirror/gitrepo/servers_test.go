// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector needs memory itself, and ten times as long to process gigabytes.

//go:build !race

package gitrepo_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// manyFiles is the number of files of a repository whose blobs do not fit into memory.
const manyFiles = 100_000

const markerContent = "clusterUID: 0000\nname: main\nnamespace: shop\n"

// fill creates a branch of about 100 MB with many files and a marker file. Git stores most of them as deltas.
func (r repository) fill() {
	r.t.Helper()
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter other <other@example.com> 1700000000 +0000\ndata 5\nmany\n\n")
	file := func(path, content string) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	for i := range manyFiles {
		if i == manyFiles/2 {
			file("folder/.configbutler/owner.yaml", markerContent)
		}
		file(fmt.Sprintf("folder/core/v1/configmaps/ns-%d/%d.yaml", i%100, i),
			fmt.Sprintf("name: %d\ntext: %s\n", i, strings.Repeat(fmt.Sprint("line ", i, "\n"), 80)))
	}
	r.importing(&stream)
}

// change adds a commit of another writer.
func (r repository) change(path, content string) {
	r.t.Helper()
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter other <other@example.com> 1700000001 +0000\ndata 6\ntheirs\nfrom "+
		"refs/heads/main^0\nM 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	r.importing(&stream)
}

func (r repository) importing(stream *bytes.Buffer) {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), "git", "fast-import", "--quiet")
	command.Dir, command.Stdin = r.path, stream
	if output, err := command.CombinedOutput(); err != nil {
		r.t.Fatalf("git fast-import: %v\n%s", err, output)
	}
}

// TestServerCapabilities reads and writes a branch of many files on servers that support filters and single objects, and on
// servers that do not, which is the default of git init. None may use more memory than a few trees need.
func TestServerCapabilities(t *testing.T) {
	r := newRepository(t)
	r.fill()
	for name, settings := range map[string]struct{ filter, any string }{
		"filters and single objects": {"true", "true"},
		"filters":                    {"true", "false"},
		"single objects":             {"false", "true"},
		"neither":                    {"false", "false"},
	} {
		t.Run(name, func(t *testing.T) {
			r := repository{t: t, path: r.path}
			r.git("config", "uploadpack.allowFilter", settings.filter)
			r.git("config", "uploadpack.allowAnySHA1InWant", settings.any)
			remote := newRemote(t, r.serve(plain))
			remote.Limits.Memory = 96 << 20
			everyPath(t, r, remote)
		})
	}
	r.fsck()
}

// everyPath runs each operation on a filled branch.
func everyPath(t *testing.T, r repository, remote *gitrepo.Remote) {
	t.Helper()
	if err := remote.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	branch := load(t, remote, gitrepo.Options{ManagedFolders: []string{"folder"}})
	if files := branch.Snapshot().Len(""); files <= manyFiles {
		t.Errorf("%d files, want more than %d", files, manyFiles)
	}
	marker, _ := branch.Snapshot().Lookup("folder/.configbutler/owner.yaml")
	contents, err := branch.Contents(t.Context(), marker)
	if err != nil || string(contents[marker]) != markerContent {
		t.Errorf("content of the marker = %q, %v", contents[marker], err)
	}
	if contents, err := branch.Contents(t.Context(), gitrepo.BlobHash([]byte("none"))); err != nil || len(contents) != 0 {
		t.Errorf("content of a missing file = %q, %v", contents, err)
	}
	r.change("folder/theirs.yaml", t.Name())
	stage(t, branch, set("folder/ours.yaml", t.Name()))
	if _, err := branch.Push(t.Context()); err == nil {
		t.Fatal("push over another writer's commit succeeded")
	}
	if err := branch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := stage(t, branch, set("folder/ours.yaml", t.Name()))
	push(t, branch)
	r.change("folder/later.yaml", t.Name())
	if found, err := branch.Contains(t.Context(), commit, 100); err != nil || !found {
		t.Errorf("Contains of the pushed commit = %v, %v", found, err)
	}
}

// TestLongHistory reads a branch with as many commits as History reads, and one with more.
func TestLongHistory(t *testing.T) {
	r := newRepository(t)
	var stream bytes.Buffer
	for i := range gitrepo.MaxHistory {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter other <other@example.com> %d +0000\ndata 1\nx\n", 1700000000+i)
	}
	r.importing(&stream)
	remote := newRemote(t, r.serve(plain))
	history, err := remote.History(t.Context(), "main", nil)
	if err != nil || len(history) != gitrepo.MaxHistory || history[0].Time.Unix() != 1700000000 {
		t.Fatalf("%d commits, %v", len(history), err)
	}
	r.change("file", "content")
	if history, err = remote.History(t.Context(), "main", history); err != nil || len(history) != gitrepo.MaxHistory+1 {
		t.Errorf("with one more: %d commits, %v", len(history), err)
	}
	_, err = remote.History(t.Context(), "main", nil)
	hasKind(t, err, gitrepo.TooLarge)
}
