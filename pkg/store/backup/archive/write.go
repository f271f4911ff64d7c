// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// bufferBytes is the size of the buffer for reads and writes.
const bufferBytes = 1 << 20

// Write writes an archive of the manifest's files. contents are their contents, in the manifest's order.
func Write(w io.Writer, m Manifest, contents []io.WriterTo) error {
	files := m.files()
	if len(contents) != len(files) {
		return fmt.Errorf("writing an archive of %d files: %d contents were given", len(files), len(contents))
	}
	m.Format = FormatVersion
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", manifestName, err)
	}
	a := &writer{tar: tar.NewWriter(w), created: m.Created}
	if err := a.add(File{Name: manifestName, Size: int64(len(text)) + 1}, bytes.NewReader(append(text, '\n'))); err != nil {
		return err
	}
	for i, file := range files {
		if err := a.add(file, contents[i]); err != nil {
			return err
		}
	}
	sums := a.sums.Bytes()
	if err := a.add(File{Name: sumsName, Size: int64(len(sums))}, bytes.NewReader(sums)); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// writer adds files to an archive and computes their checksums.
type writer struct {
	tar     *tar.Writer
	created time.Time
	sums    bytes.Buffer
}

func (a *writer) add(file File, content io.WriterTo) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: file.Name, Size: file.Size, Mode: 0o600, ModTime: a.created, Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("archiving %s: %w", file.Name, err)
	}
	sum := sha256.New()
	buffer := bufio.NewWriterSize(io.MultiWriter(a.tar, sum), bufferBytes)
	if _, err := content.WriteTo(buffer); err != nil {
		return fmt.Errorf("archiving %s: %w", file.Name, err)
	}
	if err := buffer.Flush(); err != nil {
		return fmt.Errorf("archiving %s: %w", file.Name, err)
	}
	_, err := fmt.Fprintf(&a.sums, "%x  %s\n", sum.Sum(nil), file.Name)
	return err
}
