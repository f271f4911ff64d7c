// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// rootsPath is the only file in an image besides the program. Go reads certificate authorities from it.
	rootsPath = "etc/ssl/certs/ca-certificates.crt"
	// user is the uid and gid of the program: neither root nor a user of a node.
	user = "65532:65532"
	// repository is the repository of the first image.
	repository = "ghcr.io/configbutler/slipstream"
)

// newImage creates an image with the program and the certificate authorities. Each has its own layer, since the
// authorities rarely change.
func newImage(p program) (v1.Image, error) {
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(p.path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, each := range []struct {
		path    string
		mode    int64
		content []byte
	}{{rootsPath, 0o644, certificates}, {p.product.program, 0o755, content}} {
		layer, err := newLayer(each.path, each.mode, each.content, p.time)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: p.time}, CreatedBy: "add /" + each.path}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, fmt.Errorf("add /%s to the image: %w", each.path, err)
		}
	}
	return configure(image, p)
}

// configure sets the configuration of the image and its labels.
func configure(image v1.Image, p program) (v1.Image, error) {
	base, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config := base.DeepCopy()
	config.OS, config.Architecture = "linux", p.arch
	config.Created = v1.Time{Time: p.time}
	config.Config = v1.Config{Entrypoint: []string{"/" + p.product.program}, User: user, WorkingDir: "/", Labels: labels(p)}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	return image, nil
}

// labels returns the labels that registries and scanners use.
func labels(p program) map[string]string {
	const source = "https://github.com/configbutler/slipstream"
	return map[string]string{
		"org.opencontainers.image.title":         p.product.name,
		"org.opencontainers.image.description":   p.product.description,
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.documentation": source + "/tree/main/docs",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       p.version(),
		"org.opencontainers.image.revision":      p.revision,
		"org.opencontainers.image.created":       p.time.Format(time.RFC3339),
	}
}

// newLayer creates a layer with one file and its parent folders, owned by root and with a single timestamp.
func newLayer(name string, mode int64, content []byte, at time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for end := range name {
		if name[end] != '/' {
			continue
		}
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[:end+1], Mode: 0o755, ModTime: at}); err != nil {
			return nil, fmt.Errorf("add the folder /%s: %w", path.Dir(name), err)
		}
	}
	if err := writer.WriteHeader(
		&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: at}); err != nil {
		return nil, fmt.Errorf("add the file /%s: %w", name, err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("add the file /%s: %w", name, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("end a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("make the layer of /%s: %w", name, err)
	}
	return layer, nil
}

// plain is an image that an index lists as an image. If it were listed as an artifact, with the type of its
// configuration, older tools would not recognise it and would give a copy of the index another digest.
type plain struct{ v1.Image }

// ArtifactType returns none.
func (plain) ArtifactType() (string, error) { return "", nil }

// newIndex creates the index of the images of all architectures, with the same labels.
func newIndex(images []v1.Image, programs []program) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		platform := &v1.Platform{OS: "linux", Architecture: programs[i].arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: plain{image}, Descriptor: v1.Descriptor{Platform: platform}})
	}
	annotations := maps.Clone(labels(programs[0]))
	return mutate.Annotations(index, annotations).(v1.ImageIndex)
}

// tag returns a version as a tag, which must not have a plus sign.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }
