// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"archive/tar"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// follower is a cluster that follows the mirror.
type follower struct {
	*mirrortest.Objects
	// leftOut has the files that it does not apply.
	leftOut gitignore.Matcher
	// key is the private key for encrypted Secrets.
	key string
}

// newFollower returns a cluster to which the manifests were applied.
func newFollower(t *testing.T, cluster *devcluster.Cluster, manifests, key string) *follower {
	t.Helper()
	source, _, _ := strings.Cut(manifests, "\n---\n")
	repository := parse(t, source)
	patterns, _, _ := unstructured.NestedString(repository.Object, "spec", "ignore")
	var parsed []gitignore.Pattern
	for line := range strings.Lines(patterns) {
		parsed = append(parsed, gitignore.ParsePattern(strings.TrimSuffix(line, "\n"), nil))
	}
	return &follower{mirrortest.ObjectsOf(t, cluster.Admin()), gitignore.NewMatcher(parsed), key}
}

// privateKey returns the server's private key.
func (o *origin) privateKey(t *testing.T) string {
	t.Helper()
	file, err := base64.StdEncoding.DecodeString(o.Field(t, devcluster.ServerNamespace, "secret/slipstream-age", `{.data.age\.agekey}`))
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// same expects that the follower has each mirrored object with the content of the file, and that these are at least so many.
func (o *origin) same(t *testing.T, f *follower, atLeast int) {
	t.Helper()
	compared, leftOut := 0, 0
	for path, file := range o.files(t) {
		if f.leftOut.Match(strings.Split(path, "/"), false) {
			leftOut++
			continue
		}
		compared++
		want := parse(t, file)
		if _, encrypted := want.Object["sops"]; encrypted {
			decrypted, err := sopstest.Open(t, []byte(file), f.key)
			if err != nil {
				t.Fatal(err)
			}
			want, file = parse(t, decrypted), ""
		}
		group, resource := typeOf(strings.TrimPrefix(path, o.Folder+"/"))
		found, err := f.Try.Get(t.Context(), want.GetNamespace(), resource+group+"/"+want.GetName())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := manifest.Render(found)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parse(t, string(got))); diff != "" || file != "" && string(got) != file {
			t.Errorf("%s differs (-mirror +follower):\n%s", path, diff)
		}
	}
	t.Logf("compared %d files, %d were left out", compared, leftOut)
	if compared < atLeast || leftOut == 0 {
		t.Errorf("compared %d files and left out %d, want at least %d and 1", compared, leftOut, atLeast)
	}
}

// typeOf returns the type of the object of a file: .apps and deployments, for example.
func typeOf(path string) (group, resource string) {
	parts := strings.Split(path, "/")
	if parts[0] == "core" {
		return "", parts[2]
	}
	return "." + parts[0], parts[2]
}

func parse(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(file), &object.Object); err != nil {
		t.Fatalf("%v: %s", err, file)
	}
	return object
}

// files returns the files of the branch, by path.
func (o *origin) files(t *testing.T) map[string]string {
	t.Helper()
	archive, err := o.Git(t.Context(), "archive", "--format=tar", "main")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for entries := tar.NewReader(strings.NewReader(archive)); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}
