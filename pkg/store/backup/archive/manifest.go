// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// FormatVersion is the format that this package writes and reads.
const FormatVersion = 1

const (
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"

	// maxTextBytes bounds the size of the manifest and of the checksums, which are read into memory.
	maxTextBytes = 1 << 20
)

// Manifest lists the content of an archive.
type Manifest struct {
	// Format is FormatVersion.
	Format int `json:"format"`
	// Version is the version of the program that wrote the archive.
	Version string `json:"version"`
	// Created is the point in time of the stores' content.
	Created time.Time `json:"created"`
	// Stores are the store files, Files all others.
	Stores []Store `json:"stores"`
	Files  []File  `json:"files,omitempty"`
}

// File is one file of an archive.
type File struct {
	// Name is a file name without folders.
	Name string `json:"name"`
	// Size is the size in bytes.
	Size int64 `json:"size"`
}

// Store is a store file.
type Store struct {
	File
	// Identity identifies the store uniquely, in hexadecimal.
	Identity string `json:"identity"`
	// Revision is the last revision that was handed out, CompactedRevision the oldest that can be read.
	Revision          int64 `json:"revision"`
	CompactedRevision int64 `json:"compactedRevision"`
}

// Size returns the size of all files, in bytes.
func (m Manifest) Size() (size int64) {
	for _, file := range m.files() {
		size += file.Size
	}
	return size
}

// files returns all files in their order in the archive.
func (m Manifest) files() []File {
	files := make([]File, 0, len(m.Stores)+len(m.Files))
	for _, store := range m.Stores {
		files = append(files, store.File)
	}
	return append(files, m.Files...)
}

// parseManifest parses a manifest and rejects file names that are not plain names.
func parseManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("reading %s: %w", manifestName, err)
	}
	if m.Format != FormatVersion {
		return m, fmt.Errorf("the archive has format %d and this version reads format %d only: use the version that wrote it (%s), "+
			"or a newer one",
			m.Format, FormatVersion, m.Version)
	}
	names := map[string]bool{manifestName: true, sumsName: true}
	for _, file := range m.files() {
		if err := file.validate(); err != nil {
			return m, fmt.Errorf("%s: %w", manifestName, err)
		}
		if names[file.Name] {
			return m, fmt.Errorf("%s names %q twice", manifestName, file.Name)
		}
		names[file.Name] = true
	}
	return m, nil
}

func (f File) validate() error {
	if f.Name == "" || f.Name == "." || f.Name == ".." || f.Name != filepath.Base(f.Name) || strings.ContainsAny(f.Name, "\n\\\x00") {
		return fmt.Errorf("%q is not the name of a file", f.Name)
	}
	if f.Size < 0 {
		return errors.New("the size of " + f.Name + " is negative")
	}
	return nil
}
