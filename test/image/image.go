// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image answers what `make image` makes: it has the image of this machine's architecture made, and unpacks it as a
// container runtime would.
package image

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Image is an image whose files lie in a folder.
type Image struct {
	// Root is the folder.
	Root string
	// Entrypoint and User, as UID:GID, are what the image says of how it runs.
	Entrypoint []string
	User       string
}

// Make makes the image of the module, which takes minutes the first time, and unpacks it into the folder root below folder.
func Make(ctx context.Context, module, folder string) (*Image, error) {
	command := exec.CommandContext(ctx, "go", "run", ".", "-source", module, "-output", folder, "-arches", runtime.GOARCH)
	command.Dir = filepath.Join(module, "hack", "image")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making the image: %w\n%s", err, output)
	}
	image, err := unpack(filepath.Join(folder, "layout"), filepath.Join(folder, "root"))
	if err != nil {
		return nil, fmt.Errorf("unpacking the image: %w", err)
	}
	return image, nil
}

// descriptor points at a blob of a layout.
type descriptor struct {
	Digest string `json:"digest"`
}

// manifest is what is needed of indexes, of manifests and of configurations.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Layers    []descriptor `json:"layers"`
	Config    struct {
		descriptor
		User       string   `json:"User"`
		Entrypoint []string `json:"Entrypoint"`
	} `json:"config"`
}

// unpack follows the layout's first entry to the only image in it.
func unpack(layout, root string) (*Image, error) {
	var top, index, image, config manifest
	if err := read(filepath.Join(layout, "index.json"), &top); err != nil {
		return nil, err
	}
	if len(top.Manifests) == 0 {
		return nil, errors.New("the layout is empty")
	}
	if err := read(blob(layout, top.Manifests[0]), &index); err != nil {
		return nil, err
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("%d images, want one", len(index.Manifests))
	}
	if err := read(blob(layout, index.Manifests[0]), &image); err != nil {
		return nil, err
	}
	if err := read(blob(layout, image.Config.descriptor), &config); err != nil {
		return nil, err
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	for _, layer := range image.Layers {
		if err := extract(blob(layout, layer), root); err != nil {
			return nil, err
		}
	}
	return &Image{Root: root, Entrypoint: config.Config.Entrypoint, User: config.Config.User}, nil
}

func blob(layout string, of descriptor) string {
	algorithm, digest, _ := strings.Cut(of.Digest, ":")
	return filepath.Join(layout, "blobs", algorithm, digest)
}

func read(path string, into *manifest) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// extract unpacks a layer over what is there.
func extract(layer, root string) error {
	file, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // Only read.
	content, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := place(root, header, reader); err != nil {
			return fmt.Errorf("unpacking /%s: %w", header.Name, err)
		}
	}
}

// place makes one file or folder. Whoever unpacks owns it, which is root in tests that run what is in it.
func place(root string, header *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(header.Name) {
		return errors.New("it is not below the root")
	}
	path := filepath.Join(root, header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, header.FileInfo().Mode())
	case tar.TypeReg:
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, header.FileInfo().Mode())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("it is of type %q", header.Typeflag)
}
