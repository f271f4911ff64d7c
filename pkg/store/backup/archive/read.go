// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// ErrTruncated is returned for an archive that is incomplete.
var ErrTruncated = errors.New("the archive is cut off")

// Read reads an archive and r to their ends. It calls begin with the manifest, which may reject it, and receive with each
// file in the manifest's order. The received content is verified only once Read has returned without an error.
func Read(r io.Reader, begin func(Manifest) error, receive func(file File, content io.Reader) error) (Manifest, error) {
	a := &reader{tar: tar.NewReader(r)}
	m, err := a.manifest()
	if err != nil {
		return m, err
	}
	if err := begin(m); err != nil {
		return m, err
	}
	for _, file := range m.files() {
		if err := a.file(file, receive); err != nil {
			return m, err
		}
	}
	if err := a.checkSums(); err != nil {
		return m, err
	}
	return m, a.end(r)
}

// reader reads the files of an archive in order and computes their checksums.
type reader struct {
	tar  *tar.Reader
	sums bytes.Buffer
}

func (a *reader) manifest() (Manifest, error) {
	header, err := a.tar.Next()
	switch {
	case errors.Is(err, tar.ErrHeader) || err == nil && header.Name != manifestName:
		return Manifest{}, fmt.Errorf("this is not a backup: it does not begin with %s", manifestName)
	case errors.Is(err, io.EOF):
		return Manifest{}, fmt.Errorf("%w: it is empty", ErrTruncated)
	case err != nil:
		return Manifest{}, cutOff(manifestName, err)
	}
	text, err := a.text(header)
	if err != nil {
		return Manifest{}, err
	}
	return parseManifest(text)
}

// text reads a small file.
func (a *reader) text(header *tar.Header) ([]byte, error) {
	if header.Typeflag != tar.TypeReg || header.Size > maxTextBytes {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", header.Name, maxTextBytes)
	}
	sum := sha256.New()
	text, err := io.ReadAll(io.TeeReader(a.tar, sum))
	if err != nil {
		return nil, cutOff(header.Name, err)
	}
	a.addSum(sum.Sum(nil), header.Name)
	return text, nil
}

func (a *reader) addSum(sum []byte, name string) { fmt.Fprintf(&a.sums, "%x  %s\n", sum, name) }

// file calls receive with a file, and then reads any content that receive did not.
func (a *reader) file(want File, receive func(File, io.Reader) error) error {
	header, err := a.next(want.Name)
	if err != nil {
		return err
	}
	if header.Size != want.Size {
		return fmt.Errorf("%s has %d bytes, and the manifest says %d", want.Name, header.Size, want.Size)
	}
	sum := sha256.New()
	content := &content{name: want.Name, source: io.TeeReader(a.tar, sum)}
	if err := receive(want, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	a.addSum(sum.Sum(nil), want.Name)
	return nil
}

// next advances to the next file, which must have the given name.
func (a *reader) next(name string) (*tar.Header, error) {
	header, err := a.tar.Next()
	if err != nil {
		return nil, cutOff(name, err)
	}
	if header.Name != name || header.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("found %q instead of %s", header.Name, name)
	}
	return header, nil
}

// checkSums compares the computed checksums with those in the archive.
func (a *reader) checkSums() error {
	want := bytes.Clone(a.sums.Bytes())
	header, err := a.next(sumsName)
	if err != nil {
		return err
	}
	got, err := a.text(header)
	if err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return nil
	}
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i, line := range wantLines {
		if i >= len(gotLines) || !bytes.Equal(gotLines[i], line) {
			_, name, _ := bytes.Cut(line, []byte("  "))
			return fmt.Errorf("the archive is damaged: %s does not have the checksum in %s", name, sumsName)
		}
	}
	return fmt.Errorf("the archive is damaged: %s has checksums of other files", sumsName)
}

// end returns an error if any data other than the zero padding of the last block follows.
func (a *reader) end(r io.Reader) error {
	header, err := a.tar.Next()
	if err == nil {
		return fmt.Errorf("%q follows the end of the archive", header.Name)
	}
	if !errors.Is(err, io.EOF) {
		return cutOff("the end", err)
	}
	rest := make([]byte, bufferBytes)
	for {
		n, err := r.Read(rest)
		if len(bytes.TrimLeft(rest[:n], "\x00")) > 0 {
			return errors.New("data follows the end of the archive")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return cutOff("the end", err)
		}
	}
}

// content is the content of a file. Its errors include ErrTruncated if the archive ends early.
type content struct {
	name   string
	source io.Reader
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = cutOff(c.name, err)
	}
	return n, err
}

// cutOff returns an error with the position at which an archive ended early or could not be read.
func cutOff(name string, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w at %s", ErrTruncated, name)
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("the archive is damaged before %s: %w", name, err)
	}
	return fmt.Errorf("reading %s of the archive: %w", name, err)
}
