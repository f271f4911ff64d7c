// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// optionsOn returns the options of a server on a directory.
func optionsOn(path string) *options.Options {
	opts := options.New(apiserver.NewCodecs(apiserver.NewScheme()))
	opts.Storage.DataDir = path
	return opts
}

// serving opens stores on a directory and serves commands, as a server does. restarts counts the requested restarts.
func serving(t *testing.T, path string) (s *stores, restarts *int) {
	t.Helper()
	return servingWith(t, optionsOn(path))
}

func servingWith(t *testing.T, opts *options.Options) (s *stores, restarts *int) {
	t.Helper()
	s, err := openStores(t.Context(), opts.Storage)
	if err != nil {
		t.Fatal(err)
	}
	restarts = new(int)
	closeSocket := s.serveCommands(t.Context(), opts.Storage, func() { *restarts++ })
	t.Cleanup(func() {
		if err := closeSocket(); err != nil {
			t.Error(err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s, restarts
}

func (s *stores) put(t *testing.T, key string) {
	t.Helper()
	for _, engine := range []*bolt.Engine{s.work, s.api} {
		if _, err := engine.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

// execute runs a command of the program and returns its exit code and its output.
func execute(t *testing.T, stdin string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := NewCommand(t.Context())
	command.PersistentPreRunE = nil // Features are set once in a process.
	command.SilenceErrors = true
	var out, errs bytes.Buffer
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetErr(&errs)
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		errs.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), errs.String()
}

// TestBackupOfARunningServer backs up and restores over the socket.
func TestBackupOfARunningServer(t *testing.T) {
	path, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup.tar")
	t.Run("while it serves", func(t *testing.T) {
		s, restarts := serving(t, path)
		s.put(t, "/kept")
		if code, _, said := execute(t, "", "backup", "--data-dir="+path, "-o", file); code != 0 ||
			!strings.Contains(said, "key is not in the backup") {
			t.Fatalf("exit code %d: %s", code, said)
		}
		code, streamed, said := execute(t, "", "backup", "--data-dir="+path, "-o", "-")
		if code != 0 || !strings.HasPrefix(streamed, "manifest.json") {
			t.Fatalf("exit code %d: %s", code, said)
		}
		s.put(t, "/later")
		if code, _, said := execute(t, streamed[:len(streamed)/2], "restore", "--data-dir="+path, "-"); code != 1 ||
			!strings.Contains(said, "cut off") {
			t.Errorf("half a backup: exit code %d: %s", code, said)
		}
		if *restarts != 0 {
			t.Error("a restore that failed ended the server")
		}
		if code, said, errs := execute(t, streamed, "restore", "--data-dir="+path, "-"); code != 0 || *restarts != 1 ||
			!strings.Contains(said, "the server ends now") {
			t.Errorf("exit code %d, %d restarts: %s%s", code, *restarts, said, errs)
		}
		if code, _, said := execute(t, streamed, "restore", "--data-dir="+path, "-"); code != 1 ||
			!strings.Contains(said, datadir.ErrPending.Error()) {
			t.Errorf("a second restore: exit code %d: %s", code, said)
		}
	})
	t.Run("when it is stopped", func(t *testing.T) {
		if code, said, errs := execute(t, "", "restore", "--data-dir="+path, file); code != 0 || !strings.Contains(said, "start the server") {
			t.Errorf("exit code %d: %s%s", code, said, errs)
		}
		if code, _, said := execute(t, "", "backup", "--data-dir="+path, "-o", file); code != 1 || !strings.Contains(said, "exists") {
			t.Errorf("over another file: exit code %d: %s", code, said)
		}
		if code, _, said := execute(t, "", "backup", "--data-dir="+path, "-o", file, "--force"); code != 0 {
			t.Errorf("over another file by force: exit code %d: %s", code, said)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	t.Run("when it is back", func(t *testing.T) {
		s, _ := serving(t, path)
		answer, err := s.api.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
		if err != nil || len(answer.Kvs) != 1 || string(answer.Kvs[0].Key) != "/kept" {
			t.Errorf("restored %v, %v", answer, err)
		}
	})
}

func TestBackupRefuses(t *testing.T) {
	empty := t.TempDir()
	tests := []struct {
		name      string
		arguments []string
		code      int
		want      string
	}{
		{name: "no file", arguments: []string{"backup"}, code: exitUsage, want: "--output (-o) must name a file"},
		{name: "an unknown flag", arguments: []string{"backup", "--fast"}, code: exitUsage, want: "--fast"},
		{name: "etcd", arguments: []string{"backup", "-o", "-", "--storage-backend=etcd3"}, code: exitUsage, want: "etcdctl snapshot save"},
		{name: "no stores", arguments: []string{"backup", "-o", "-", "--data-dir=" + empty}, code: exitFailed, want: "there are no stores"},
		{name: "no backup", arguments: []string{"restore", filepath.Join(empty, "missing")}, code: exitFailed, want: "opening the backup"},
		{name: "no argument", arguments: []string{"restore"}, code: exitUsage, want: "accepts 1 arg"},
		{
			name: "a restore to etcd", arguments: []string{"restore", "-", "--storage-backend=etcd3"},
			code: exitUsage, want: "etcdutl snapshot restore",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if code, _, said := execute(t, "", tt.arguments...); code != tt.code || !strings.Contains(said, tt.want) {
				t.Errorf("exit code %d, want %d with %q: %s", code, tt.code, tt.want, said)
			}
		})
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
