// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	indexFile     = "index.json"
	archiveSuffix = ".oci.tar"
)

// imageNames are the names of all images. The first is the server's.
var imageNames = []string{"slipstream", "slipstream-dashboard"}

// image is an image of a release.
type image struct {
	name, repository string
	// digest is that of the index of the images for all architectures.
	digest string
}

func newImage(name, digest string) image {
	return image{name, "ghcr.io/configbutler/" + name, digest}
}

// writeImages writes the images into the folder of a release, each as an OCI archive with all architectures and bills of materials, and as
// archives for docker and podman. It also writes the bills of materials.
func writeImages(folder, output string, at time.Time) ([]image, error) {
	var images []image
	for _, each := range []struct{ name, folder string }{
		{imageNames[0], folder}, {imageNames[1], filepath.Join(folder, "dashboard")},
	} {
		layout := filepath.Join(each.folder, "layout")
		digest, err := digestOf(layout)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", each.name, err)
		}
		if err := writeArchive(filepath.Join(output, each.name+archiveSuffix), layout, at); err != nil {
			return nil, fmt.Errorf("image %s: %w", each.name, err)
		}
		if err := copyFiles(each.folder, output, each.name+"-linux-*"); err != nil {
			return nil, fmt.Errorf("image %s: %w", each.name, err)
		}
		images = append(images, newImage(each.name, digest))
	}
	return images, nil
}

// digestOf returns the digest of the only index in an OCI layout.
func digestOf(layout string) (string, error) {
	content, err := os.ReadFile(filepath.Join(layout, indexFile))
	if err != nil {
		return "", err
	}
	return indexDigest(content)
}

// indexDigest returns the digest of the only index of images in the index of an OCI layout.
func indexDigest(content []byte) (string, error) {
	var top struct {
		Manifests []struct {
			MediaType, Digest string
		}
	}
	if err := json.Unmarshal(content, &top); err != nil {
		return "", fmt.Errorf("decode the index of a layout: %w", err)
	}
	var found []string
	for _, each := range top.Manifests {
		if each.MediaType == "application/vnd.oci.image.index.v1+json" {
			found = append(found, each.Digest)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("a layout has %d indexes of images, want one", len(found))
	}
	return found[0], nil
}

// writeArchive packs a folder into a tar file, the same for the same files.
func writeArchive(path, folder string, at time.Time) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	archive := tar.NewWriter(file)
	// The order of WalkDir is that of the names.
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}

// copyFiles copies the files of a folder whose names match a pattern, of which there must be some.
func copyFiles(from, to, pattern string) error {
	found, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil || len(found) == 0 {
		return errors.Join(err, fmt.Errorf("no files like %s in %s", pattern, from))
	}
	slices.Sort(found)
	for _, path := range found {
		if err := copyFile(path, filepath.Join(to, filepath.Base(path))); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // It was only read.
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
