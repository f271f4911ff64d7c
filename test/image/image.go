// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds an image for this machine's architecture like `make image`, and unpacks it like a container runtime.
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

// Image is an unpacked image.
type Image struct {
	// Root is the folder with its files.
	Root string
	// Entrypoint and User are from the configuration of the image. User is UID:GID.
	Entrypoint []string
	User       string
}

// Name is the name of an image.
type Name string

// The images of `make image`.
const (
	Server Name = "slipstream"
	Page   Name = "slipstream-dashboard"
)

// folder returns the folder of the image in the output of `make image`.
func (n Name) folder(output string) string {
	if n == Page {
		return filepath.Join(output, "dashboard")
	}
	return output
}

// Make builds an image of the module, which takes minutes the first time, and unpacks it into the folder root in folder.
func Make(ctx context.Context, module, folder string, name Name) (*Image, error) {
	command := exec.CommandContext(ctx, "go", "run", ".", "-source", module, "-output", folder, "-images", string(name), "-arches", runtime.GOARCH)
	command.Dir = filepath.Join(module, "hack", "image")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("failed to build the image: %w\n%s", err, output)
	}
	image, err := Unpack(filepath.Join(name.folder(folder), "layout"), filepath.Join(folder, "root"))
	if err != nil {
		return nil, fmt.Errorf("failed to unpack the image: %w", err)
	}
	return image, nil
}

// descriptor refers to a blob of a layout.
type descriptor struct {
	Digest string `json:"digest"`
}

// manifest has the used fields of indexes, manifests and configurations.
type manifest struct {
	Manifests []descriptor `json:"manifests"`
	Layers    []descriptor `json:"layers"`
	Config    struct {
		descriptor
		User       string   `json:"User"`
		Entrypoint []string `json:"Entrypoint"`
	} `json:"config"`
}

// Unpack unpacks the only image of the layout's first entry into the new folder root.
func Unpack(layout, root string) (*Image, error) {
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
		return fmt.Errorf("failed to decode %s: %w", path, err)
	}
	return nil
}

// extract unpacks a layer over the earlier ones.
func extract(layer, root string) error {
	file, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
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
			return fmt.Errorf("failed to unpack /%s: %w", header.Name, err)
		}
	}
}

// place creates one file or folder. Its owner is the user of the test, which is root in tests that run the image.
func place(root string, header *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(header.Name) {
		return errors.New("path is not below the root")
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
	return fmt.Errorf("unsupported type %q", header.Typeflag)
}
