// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile has the checksums of all files of a release except itself and the provenance, which is about it.
const sumsFile = "SHA256SUMS"

// file is a file of a release.
type file struct{ name, sum string }

// writeSums writes the checksums in the format of sha256sum.
func writeSums(output string) error {
	path := filepath.Join(output, sumsFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // That of the archives of the plugin.
		return err
	}
	files, err := readFiles(output)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, each := range files {
		_, _ = fmt.Fprintf(&sums, "%s  %s\n", each.sum, each.name) // A Builder has no errors.
	}
	return os.WriteFile(path, []byte(sums.String()), 0o644)
}

// readFiles returns the files of a release, sorted by name.
func readFiles(output string) ([]file, error) {
	entries, err := os.ReadDir(output)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		sum, err := sumOf(filepath.Join(output, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{entry.Name(), sum})
	}
	return files, nil
}

func sumOf(path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }() // It was only read.
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
