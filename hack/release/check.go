// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	bundleSuffix = ".sigstore.json"
	publicKey    = "cosign.pub"
)

// sumLine is a line in the format of sha256sum. A name has no slash, and does not begin with a dot or a dash.
var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([0-9A-Za-z_][0-9A-Za-z_.+-]*)$`)

// check returns the images of a release that was built before. It returns an error if a file differs from its checksum, has none, or is
// not what the provenance is about, and if the provenance is not that of the tag.
func check(ctx context.Context, s settings) ([]image, error) {
	listed, err := checkSums(s.output)
	if err != nil {
		return nil, err
	}
	if name := "slipstream-" + strings.TrimPrefix(s.version, "v") + ".tgz"; listed[name] == "" {
		return nil, fmt.Errorf("%s does not have %s, the chart of %q", sumsFile, name, s.version)
	}
	images, err := packedImages(s.output)
	if err != nil {
		return nil, err
	}
	about, err := readStatement(filepath.Join(s.output, provenanceFile))
	if err != nil {
		return nil, err
	}
	id, err := output(ctx, s.source, "git", "rev-parse", "--verify", "refs/tags/"+s.version+"^{commit}")
	if err != nil {
		return nil, err
	}
	if err := about.isOf(s.version, strings.TrimSpace(string(id))); err != nil {
		return nil, fmt.Errorf("%s: %w", provenanceFile, err)
	}
	if err := about.isAbout(listed, images); err != nil {
		return nil, fmt.Errorf("%s: %w", provenanceFile, err)
	}
	if partial := about.Predicate.BuildDefinition.ExternalParameters["partial"]; partial != "" {
		fmt.Fprintln(os.Stderr, "warning: the release is partial:", partial)
	}
	return images, nil
}

// checkSums compares the files of a release with its checksums, and returns these and that of the list, by name.
func checkSums(folder string) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return nil, err
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(content)) {
		found := sumLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil || listed[found[2]] != "" {
			return nil, fmt.Errorf("%s has the line %q", sumsFile, line)
		}
		listed[found[2]] = found[1]
	}
	if listed[sumsFile], err = sumOf(filepath.Join(folder, sumsFile)); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	missing := maps.Clone(listed)
	for _, entry := range entries {
		name := entry.Name()
		delete(missing, name)
		switch sum, err := sumOf(filepath.Join(folder, name)); {
		case !entry.Type().IsRegular():
			return nil, fmt.Errorf("%s is not a file", name)
		case err != nil:
			return nil, err
		case listed[name] == "" && !isAdded(name, listed):
			return nil, fmt.Errorf("%s has no line in %s", name, sumsFile)
		case listed[name] != "" && listed[name] != sum:
			return nil, fmt.Errorf("%s has another sum than in %s", name, sumsFile)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s has %s, which is not there", sumsFile, slices.Min(slices.Collect(maps.Keys(missing))))
	}
	return listed, nil
}

// isAdded reports whether a file is the provenance, or of an earlier attempt to sign.
func isAdded(name string, listed map[string]string) bool {
	signed, bundle := strings.CutSuffix(name, bundleSuffix)
	return name == provenanceFile || name == publicKey || bundle && (listed[signed] != "" || signed == "provenance")
}

// packedImages returns the images in the OCI archives of a release.
func packedImages(folder string) ([]image, error) {
	var images []image
	for _, name := range imageNames {
		digest, err := packedDigest(filepath.Join(folder, name+archiveSuffix))
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", name, err)
		}
		images = append(images, newImage(name, digest))
	}
	return images, nil
}

// packedDigest returns the digest of the index in an OCI archive.
func packedDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // It was only read.
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%s has no %s", path, indexFile)
		}
		if err != nil {
			return "", err
		}
		if header.Name != indexFile {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return "", err
		}
		return indexDigest(content)
	}
}

func readStatement(path string) (statement, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return statement{}, err
	}
	var about statement
	if err := json.Unmarshal(content, &about); err != nil {
		return statement{}, fmt.Errorf("decode %s: %w", path, err)
	}
	return about, nil
}

// isOf returns an error if the statement is about another version or commit.
func (s statement) isOf(version, commit string) error {
	definition := s.Predicate.BuildDefinition
	if got := definition.ExternalParameters["version"]; got != version {
		return fmt.Errorf("the version is %q, want %q", got, version)
	}
	if sources := definition.ResolvedDependencies; len(sources) == 0 || sources[0].Digest["gitCommit"] != commit {
		return fmt.Errorf("the first source is not %s, the commit of %s", commit, version)
	}
	return nil
}

// isAbout returns an error if the subjects of the statement are others than these files and images.
func (s statement) isAbout(files map[string]string, images []image) error {
	want := maps.Clone(files)
	for _, each := range images {
		want[each.repository] = strings.TrimPrefix(each.digest, "sha256:")
	}
	for _, each := range s.Subject {
		if want[each.Name] == "" || want[each.Name] != each.Digest["sha256"] {
			return fmt.Errorf("the subject %s has the digest %s, want %q", each.Name, each.Digest["sha256"], want[each.Name])
		}
		delete(want, each.Name)
	}
	if len(want) > 0 {
		return fmt.Errorf("%s is not a subject", slices.Min(slices.Collect(maps.Keys(want))))
	}
	return nil
}
