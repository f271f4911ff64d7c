// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

func TestContents(t *testing.T) {
	for name, settings := range map[string]map[string]string{
		"any blob":           {"uploadpack.allowAnySHA1InWant": "true"},
		"commits only":       {"uploadpack.allowReachableSHA1InWant": "true"},
		"filters":            {},
		"none of these":      {"uploadpack.allowFilter": "false"},
		"blobs, not filters": {"uploadpack.allowAnySHA1InWant": "true", "uploadpack.allowFilter": "false"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			for key, value := range settings {
				r.git("config", key, value)
			}
			w := r.clone()
			// Git stores these similar files as deltas.
			want := map[string]string{}
			for i := range 20 {
				path := fmt.Sprintf("folder/%d.yaml", i)
				want[path] = strings.Repeat("the same text over and over\n", 40) + fmt.Sprint("name: ", i, "\n")
				w.write(path, want[path])
			}
			w.write("folder/large.yaml", strings.Repeat("x", gitrepo.MaxContent+1))
			w.write("folder/empty.yaml", "")
			w.push("files")
			r.git("gc", "--quiet")

			branch, err := gitrepo.Load(t.Context(), newRemote(t, r.serve(plain)), "main", gitrepo.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want["folder/empty.yaml"] = ""
			var hashes []gitrepo.Hash
			for path := range want {
				hash, _ := branch.Snapshot().Lookup(path)
				hashes = append(hashes, hash)
			}
			large, _ := branch.Snapshot().Lookup("folder/large.yaml")
			got, err := branch.Contents(t.Context(), append(hashes, large)...)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := got[large]; ok || len(got) != len(want) {
				t.Errorf("%d files, large file included: %v; want %d files without it", len(got), ok, len(want))
			}
			for path, content := range want {
				hash, _ := branch.Snapshot().Lookup(path)
				if text, ok := got[hash]; !ok || string(text) != content {
					t.Errorf("%s: %v, %q", path, ok, text)
				}
			}
			if none, err := branch.Contents(t.Context()); err != nil || len(none) != 0 {
				t.Errorf("Contents() = %v, %v", none, err)
			}
		})
	}
}

func TestContentsOfMissingFiles(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.write("a", "1")
	w.push("one")
	branch, err := gitrepo.Load(t.Context(), newRemote(t, r.serve(plain)), "main", gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := branch.Contents(t.Context(), gitrepo.BlobHash([]byte("another"))); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
