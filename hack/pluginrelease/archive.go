// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

const licenseFile = "LICENSE"

// archive is a packed program with the license.
type archive struct {
	name    string
	content []byte
	of      program
}

// sum returns the SHA-256 of the archive.
func (a archive) sum() string {
	sum := sha256.Sum256(a.content)
	return hex.EncodeToString(sum[:])
}

// entry is a file in an archive.
type entry struct {
	name    string
	content []byte
	mode    int64
}

// pack packs a program with the license: a zip file for Windows, else a compressed tar file. Files have the time of the commit.
func pack(p program, license []byte) (archive, error) {
	content, err := os.ReadFile(p.path)
	if err != nil {
		return archive{}, err
	}
	entries := []entry{{p.file(), content, 0o755}, {licenseFile, license, 0o644}}
	packed := archive{name: fmt.Sprintf("kubectl-slipstream_%s_%s_%s.tar.gz", p.version, p.os, p.arch), of: p}
	form := tarball
	if p.os == "windows" {
		packed.name, form = fmt.Sprintf("kubectl-slipstream_%s_%s_%s.zip", p.version, p.os, p.arch), zipFile
	}
	if packed.content, err = form(p, entries); err != nil {
		return archive{}, fmt.Errorf("pack %s: %w", packed.name, err)
	}
	return packed, nil
}

func tarball(p program, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	files := tar.NewWriter(compressed)
	for _, each := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: each.name, Mode: each.mode, Size: int64(len(each.content)), ModTime: p.time, Format: tar.FormatUSTAR,
		}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(each.content); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipFile(p program, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	files := zip.NewWriter(&out)
	for _, each := range entries {
		header := &zip.FileHeader{Name: each.name, Method: zip.Deflate, Modified: p.time.UTC()}
		header.SetMode(os.FileMode(each.mode))
		file, err := files.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(each.content); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
