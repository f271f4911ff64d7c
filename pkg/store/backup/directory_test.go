// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// keyFile is the name of the file with the encryption key.
const keyFile = "encryption.yaml"

// moment is the time of the tests' backups and restores.
var moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// server is a data directory with open stores.
type server struct {
	dir *datadir.Dir
	backup.Stores
}

func open(t testing.TB, path string) *server {
	t.Helper()
	dir, err := datadir.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{dir: dir}
	for name, engine := range map[string]**bolt.Engine{datadir.APIFile: &s.API, datadir.WorkFile: &s.Work} {
		if *engine, err = bolt.Open(t.Context(), dir.File(name), bolt.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *server) close(t testing.TB) {
	t.Helper()
	if err := errors.Join(s.API.Close(), s.Work.Close(), s.dir.Close()); err != nil {
		t.Fatal(err)
	}
}

func (s *server) backup(t testing.TB, key string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := backup.Write(&out, s.Stores, backup.Options{Version: "v1", KeyFile: key, Now: moment}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func put(ctx context.Context, e *bolt.Engine, key, value string) error {
	_, err := e.Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(value)})
	return err
}

// fill puts a key into both stores.
func (s *server) fill(t testing.TB, key, value string) {
	t.Helper()
	if err := errors.Join(put(t.Context(), s.Work, key, value), put(t.Context(), s.API, key, value)); err != nil {
		t.Fatal(err)
	}
}

// content returns the keys and values of a store.
func content(t testing.TB, e *bolt.Engine) map[string]string {
	t.Helper()
	response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, kv := range response.Kvs {
		values[string(kv.Key)] = string(kv.Value)
	}
	return values
}

// restore restores an archive to a directory that no process has open.
func restore(t testing.TB, path string, r io.Reader) (backup.Staged, error) {
	t.Helper()
	dir, err := datadir.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	return backup.RestoreDirectory(t.Context(), dir, backup.Target{KeyFile: keyFile}, r, moment)
}

// TestRestore restores over stores with later writes, and into an empty directory.
func TestRestore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	s.fill(t, "/kept", "then")
	saved := s.backup(t, "")
	savedIdentity := s.API.Identity()
	s.fill(t, "/kept", "now")
	s.fill(t, "/later", "now")
	before := s.API.Revision()
	s.close(t)

	staged, err := restore(t, path, bytes.NewReader(saved))
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.close(t)
	for _, e := range []*bolt.Engine{s.API, s.Work} {
		if got := content(t, e); !maps.Equal(got, map[string]string{"/kept": "then"}) {
			t.Errorf("%s holds %v", e.Path(), got)
		}
		if want := before + backup.RevisionGap; e.Revision() != want || e.CompactRevision() != want {
			t.Errorf("%s is at %d, compacted %d, want %d", e.Path(), e.Revision(), e.CompactRevision(), want)
		}
	}
	if s.API.Identity() != savedIdentity {
		t.Error("the identity of the place was lost")
	}
	aside, err := bolt.Inspect(t.Context(), filepath.Join(staged.Aside, datadir.APIFile))
	if err != nil || aside.Revision != before {
		t.Errorf("what was there before is at %d (%v), want %d", aside.Revision, err, before)
	}

	other := filepath.Join(t.TempDir(), "other")
	if _, err := restore(t, other, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	clone := open(t, other)
	defer clone.close(t)
	if got := content(t, clone.API); !maps.Equal(got, map[string]string{"/kept": "then"}) {
		t.Errorf("the other directory holds %v", got)
	}
	if clone.API.Identity() == savedIdentity {
		t.Error("two directories have one identity")
	}
}

// TestRestoreAgain restores twice, the second time from a backup of the restored stores.
func TestRestoreAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	s.fill(t, "/a", "1")
	saved := s.backup(t, "")
	s.close(t)
	last := int64(0)
	for range 2 {
		if _, err := restore(t, path, bytes.NewReader(saved)); err != nil {
			t.Fatal(err)
		}
		s = open(t, path)
		if s.API.Revision() < last+backup.RevisionGap {
			t.Errorf("revision %d after %d", s.API.Revision(), last)
		}
		last = s.API.Revision()
		s.close(t)
	}
}

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	key := s.dir.File(keyFile)
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	without, with := s.backup(t, ""), s.backup(t, key)
	s.close(t)
	if bytes.Contains(without, []byte("secret")) {
		t.Error("the key is in a backup that should be without")
	}
	other := filepath.Join(t.TempDir(), "other")
	if _, err := restore(t, other, bytes.NewReader(with)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(other, keyFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the key is %v, %v", info, err)
	}
	if _, err := restore(t, other, bytes.NewReader(without)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(other, keyFile)); string(text) != "secret" {
		t.Errorf("a backup without a key changed the one there is: %q, %v", text, err)
	}
}

// rewrite returns an archive with modified files.
func rewrite(t *testing.T, saved []byte, change func(m *archive.Manifest, files map[string][]byte)) []byte {
	t.Helper()
	files := map[string][]byte{}
	m, err := archive.Read(bytes.NewReader(saved), func(archive.Manifest) error { return nil },
		func(file archive.File, content io.Reader) (err error) {
			files[file.Name], err = io.ReadAll(content)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	change(&m, files)
	var contents []io.WriterTo
	for i := range m.Stores {
		m.Stores[i].Size = int64(len(files[m.Stores[i].Name]))
		contents = append(contents, bytes.NewReader(files[m.Stores[i].Name]))
	}
	for i := range m.Files {
		m.Files[i].Size = int64(len(files[m.Files[i].Name]))
		contents = append(contents, bytes.NewReader(files[m.Files[i].Name]))
	}
	var out bytes.Buffer
	if err := archive.Write(&out, m, contents); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRestoreRefuses restores archives that are damaged, or complete but invalid. The data directory must not change by a
// byte.
func TestRestoreRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	for i := range 200 {
		s.fill(t, fmt.Sprintf("/key/%d", i), strings.Repeat("x", 500))
	}
	saved := s.backup(t, "")
	s.close(t)
	middle := len(saved) / 3
	tests := []struct {
		name, want string
		archive    []byte
	}{
		{name: "nothing", want: "cut off: it is empty"},
		{name: "cut off", archive: saved[:middle], want: "the archive is cut off at"},
		{
			name: "a changed byte", archive: slices.Concat(saved[:middle], []byte{saved[middle] ^ 1}, saved[middle+1:]),
			want: "does not have the checksum",
		},
		{
			name: "one store", archive: rewrite(t, saved, func(m *archive.Manifest, _ map[string][]byte) { m.Stores = m.Stores[:1] }),
			want: `it has the stores ["api.db"]`,
		},
		{name: "an unknown file", archive: rewrite(t, saved, func(m *archive.Manifest, files map[string][]byte) {
			m.Files, files["lock"] = []archive.File{{Name: "lock"}}, []byte("x")
		}), want: `it has the unknown file "lock"`},
		{name: "no store", archive: rewrite(t, saved, func(_ *archive.Manifest, files map[string][]byte) {
			files["work.db"] = bytes.Repeat([]byte("text"), 5000)
		}), want: "checking work.db of the backup"},
		{name: "damaged pages", archive: rewrite(t, saved, func(_ *archive.Manifest, files map[string][]byte) {
			db := files["api.db"]
			for page := 4; page*4096 < len(db); page++ {
				copy(db[page*4096:], make([]byte, 2048))
			}
		}), want: "checking api.db of the backup"},
		{name: "a store that is too short", archive: rewrite(t, saved, func(_ *archive.Manifest, files map[string][]byte) {
			files["api.db"] = files["api.db"][:5*4096]
		}), want: "checking api.db of the backup"},
		{
			name: "another revision", archive: rewrite(t, saved, func(m *archive.Manifest, _ map[string][]byte) { m.Stores[0].Revision++ }),
			want: "the manifest says",
		},
	}
	before := snapshot(t, path)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := restore(t, path, bytes.NewReader(tt.archive))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
			if after := snapshot(t, path); !maps.Equal(after, before) {
				t.Errorf("the directory was changed: %v", slices.Sorted(maps.Keys(after)))
			}
		})
	}
}

// snapshot returns the content of the files of a directory.
func snapshot(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(path, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRestoreOverDamage restores over stores that cannot be read.
func TestRestoreOverDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	s.fill(t, "/a", "1")
	saved := s.backup(t, "")
	at := s.API.Revision()
	s.close(t)
	for name, damaged := range map[string][]byte{datadir.APIFile: []byte("text"), datadir.WorkFile: nil} {
		if err := os.WriteFile(filepath.Join(path, name), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := restore(t, path, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.close(t)
	if got := s.API.Revision(); got != at+backup.RevisionGap {
		t.Errorf("revision %d, want %d", got, at+backup.RevisionGap)
	}
	if got := content(t, s.API); got["/a"] != "1" {
		t.Errorf("content %v", got)
	}
}

// TestPending checks that a second restore is refused while one waits for the server to stop.
func TestPending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := open(t, path)
	s.fill(t, "/a", "1")
	saved := s.backup(t, "")
	s.fill(t, "/a", "2")
	replaced := func() backup.Replaced {
		return backup.Replaced{datadir.APIFile: backup.StateOf(s.API), datadir.WorkFile: backup.StateOf(s.Work)}
	}
	stage := func() error {
		_, err := backup.Stage(t.Context(), backup.Target{Dir: path, KeyFile: keyFile, Replaced: replaced}, bytes.NewReader(saved), moment)
		return err
	}
	if err := stage(); err != nil {
		t.Fatal(err)
	}
	if err := stage(); !errors.Is(err, datadir.ErrPending) {
		t.Errorf("error = %v, want ErrPending", err)
	}
	s.fill(t, "/a", "3")
	s.close(t)
	s = open(t, path)
	defer s.close(t)
	if got := content(t, s.API); got["/a"] != "1" {
		t.Errorf("content after the next start: %v", got)
	}
}

func TestOneProcessHasADirectory(t *testing.T) {
	path := t.TempDir()
	if _, err := datadir.OpenExisting(t.Context(), path); !errors.Is(err, datadir.ErrNoStores) {
		t.Errorf("error = %v, want ErrNoStores", err)
	}
	if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
		t.Errorf("looking for stores made %v, %v", left, err)
	}
	s := open(t, path)
	defer s.close(t)
	if _, err := datadir.OpenExisting(t.Context(), path); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("error = %v, want ErrInUse", err)
	}
}
