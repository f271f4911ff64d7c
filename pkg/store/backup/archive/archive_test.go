// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/store/backup/archive"
)

// contents are the files of the tests' archive.
var contents = map[string]string{"api.db": strings.Repeat("a", 3000), "work.db": strings.Repeat("w", 700), "encryption.yaml": "key"}

func manifest() archive.Manifest {
	return archive.Manifest{
		Version: "v1", Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Stores: []archive.Store{
			{File: archive.File{Name: "api.db", Size: 3000}, Identity: "01", Revision: 7, CompactedRevision: 3},
			{File: archive.File{Name: "work.db", Size: 700}, Identity: "02", Revision: 9},
		},
		Files: []archive.File{{Name: "encryption.yaml", Size: 3}},
	}
}

func sources() []io.WriterTo {
	return []io.WriterTo{
		strings.NewReader(contents["api.db"]), strings.NewReader(contents["work.db"]), strings.NewReader(contents["encryption.yaml"]),
	}
}

func write(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := archive.Write(&out, manifest(), sources()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read returns the content of an archive.
func read(r io.Reader) (archive.Manifest, map[string]string, error) {
	got := map[string]string{}
	m, err := archive.Read(r, func(archive.Manifest) error { return nil }, func(file archive.File, content io.Reader) error {
		text, err := io.ReadAll(content)
		got[file.Name] = string(text)
		return err
	})
	return m, got, err
}

func TestRead(t *testing.T) {
	m, got, err := read(bytes.NewReader(write(t)))
	if err != nil {
		t.Fatal(err)
	}
	if m.Format != archive.FormatVersion || m.Stores[0] != manifest().Stores[0] || !m.Created.Equal(manifest().Created) || m.Size() != 3703 {
		t.Errorf("manifest = %+v", m)
	}
	for name, want := range contents {
		if got[name] != want {
			t.Errorf("%s = %.20q, want %.20q", name, got[name], want)
		}
	}
}

// TestReadCutOff truncates the archive at every byte. Only trailing zeros may be missing.
func TestReadCutOff(t *testing.T) {
	whole := write(t)
	needed := len(bytes.TrimRight(whole, "\x00"))
	for n := range needed {
		if _, _, err := read(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("%d bytes of %d passed for whole", n, len(whole))
		} else if n > 0 && n%512 == 0 && !errors.Is(err, archive.ErrTruncated) {
			t.Errorf("cut off at %d: %v", n, err)
		}
	}
}

// TestReadChanged changes every byte. Only bytes that do not affect the files may differ.
func TestReadChanged(t *testing.T) {
	whole := write(t)
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x15
		_, got, err := read(bytes.NewReader(changed))
		if err != nil {
			continue
		}
		for name, want := range contents {
			if got[name] != want {
				t.Fatalf("%s was taken although byte %d was changed", name, i)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	whole := write(t)
	tests := []struct {
		name, want string
		archive    []byte
	}{
		{name: "nothing", want: "cut off: it is empty"},
		{name: "a text", archive: bytes.Repeat([]byte("text\n"), 200), want: "this is not a backup"},
		{name: "another tar", archive: bytes.Replace(whole, []byte("manifest.json"), []byte("somewhat.json"), 1), want: "not a backup"},
		{
			name: "a newer format", archive: bytes.Replace(whole, []byte(`"format": 1`), []byte(`"format": 9`), 1),
			want: "format 9 and this version reads format 1",
		},
		{
			name: "a changed store", archive: bytes.Replace(whole, []byte("aaaa"), []byte("aaba"), 1),
			want: "damaged: api.db does not have the checksum",
		},
		{
			name: "a changed manifest", archive: bytes.Replace(whole, []byte(`"revision": 7`), []byte(`"revision": 8`), 1),
			want: "damaged: manifest.json does not have the checksum",
		},
		{
			name: "another size", archive: bytes.Replace(whole, []byte(`"size": 700`), []byte(`"size": 701`), 1),
			want: "work.db has 700 bytes, and the manifest says 701",
		},
		{
			name: "a path", archive: bytes.Replace(whole, []byte(`"name": "work.db"`), []byte(`"name": "../k.db"`), 1),
			want: `"../k.db" is not the name of a file`,
		},
		{name: "a name twice", archive: bytes.Replace(whole, []byte(`"name": "work.db"`), []byte(`"name":  "api.db"`), 1), want: "twice"},
		{name: "something behind it", archive: append(bytes.Clone(whole), "more"...), want: "follows the end"},
		{name: "another archive behind it", archive: append(bytes.Clone(whole), whole...), want: "follows the end"},
		{name: "half of it", archive: whole[:len(whole)/2], want: "the archive is cut off at work.db"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := read(bytes.NewReader(tt.archive)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadStopsWhereItIsTold(t *testing.T) {
	refused := errors.New("refused")
	_, err := archive.Read(bytes.NewReader(write(t)), func(archive.Manifest) error { return refused },
		func(archive.File, io.Reader) error { t.Error("a file of a refused archive was handed on"); return nil })
	if !errors.Is(err, refused) {
		t.Errorf("error = %v", err)
	}
	_, err = archive.Read(bytes.NewReader(write(t)), func(archive.Manifest) error { return nil },
		func(archive.File, io.Reader) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("error = %v", err)
	}
}

// TestOrdinaryToolsReadIt unpacks with tar and verifies with sha256sum.
func TestOrdinaryToolsReadIt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tar")
	if err := os.WriteFile(file, write(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"tar", "-xf", file}, {"sha256sum", "-c", "SHA256SUMS"}} {
		run := exec.CommandContext(t.Context(), command[0], command[1:]...)
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

func FuzzRead(f *testing.F) {
	whole := write(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, got, err := read(bytes.NewReader(text)); err == nil {
			for name := range got {
				if name != filepath.Base(name) {
					t.Errorf("%q leads elsewhere", name)
				}
			}
		}
	})
}
