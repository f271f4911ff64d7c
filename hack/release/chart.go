// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// chart is the folder of the chart in the repository.
const chart = "charts/slipstream"

// writeChart packs the committed chart with the digests of the images, and renders it to install.yaml.
func writeChart(ctx context.Context, s settings, at time.Time, images []image) error {
	archive, err := output(ctx, s.source, "git", "archive", "--format=tar", "HEAD", chart)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-chart-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // The machine also removes temporary folders.
	if err := extract(archive, scratch, at, func(name string, content []byte) ([]byte, error) {
		if name != chart+"/values.yaml" {
			return content, nil
		}
		return pin(content, images)
	}); err != nil {
		return fmt.Errorf("copy the chart: %w", err)
	}
	// helm package gives the files in the archive the times of those in the folder.
	if _, err := output(ctx, s.source, s.helm, "package", filepath.Join(scratch, chart), "--destination", s.output); err != nil {
		return err
	}
	packed := filepath.Join(s.output, "slipstream-"+strings.TrimPrefix(s.version, "v")+".tgz")
	// helm push writes the time of the archive into the artifact.
	if err := os.Chtimes(packed, at, at); err != nil {
		return err
	}
	manifest, err := output(ctx, s.source, "hack/render-manifest.sh", s.helm, packed)
	if err != nil {
		return err
	}
	return s.write("install.yaml", manifest)
}

// extract writes the files of an archive into a folder, as changed, all with the same time.
func extract(archive []byte, folder string, at time.Time, change func(name string, content []byte) ([]byte, error)) error {
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if content, err = change(header.Name, content); err != nil {
			return err
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(path, at, at); err != nil {
			return err
		}
	}
}

// pin sets the digests of the images in the chart's values.
func pin(values []byte, images []image) ([]byte, error) {
	for _, each := range images {
		unpinned := regexp.MustCompile(`(?m)^( *repository: ` + regexp.QuoteMeta(each.repository) + `\n *tag: ""\n *digest: )""$`)
		if found := len(unpinned.FindAll(values, -1)); found != 1 {
			return nil, fmt.Errorf("values.yaml has the image %s without a digest %d times, want once", each.repository, found)
		}
		values = unpinned.ReplaceAll(values, []byte("${1}"+each.digest))
	}
	return values, nil
}
