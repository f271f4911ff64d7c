// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/apiserver/pkg/storage/etcd3/testserver"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// victimDirectory is the environment variable with the data directory of the process to kill.
const victimDirectory = "SLIPSTREAM_TEST_VICTIM_DIRECTORY"

// TestVictim is the process that killed kills. It serves commands, writes rows to both files, and prints how many are
// written.
func TestVictim(t *testing.T) {
	path := os.Getenv(victimDirectory)
	if path == "" {
		t.Skip("plays the victim of killed")
	}
	s, _ := serving(t, path)
	for n := 1; ; n++ {
		s.putRow(t, n)
		fmt.Println(n)
	}
}

// prefixes returns the prefix of the keys of each file.
func prefixes() map[string]string {
	return map[string]string{datadir.APIFile: "/registry/", datadir.WorkFile: "/registry-work/"}
}

func rowKey(file string, n int) []byte { return fmt.Appendf(nil, "%s%08d", prefixes()[file], n) }

// putRow writes a row to each file.
func (s *stores) putRow(t *testing.T, n int) {
	t.Helper()
	for file, engine := range map[string]*bolt.Engine{datadir.APIFile: s.api, datadir.WorkFile: s.work} {
		if _, err := engine.Put(t.Context(), &pb.PutRequest{Key: rowKey(file, n), Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

// killed returns a data directory whose server was killed while it wrote, and the number of rows that it had reported as written.
func killed(t *testing.T) (path string, rows int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	victim.Env = append(os.Environ(), victimDirectory+"="+path)
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			continue // The line that the kill cut off.
		}
		if rows = n; rows == 100 {
			_ = victim.Process.Kill() // It has not ended yet.
		}
	}
	_ = victim.Wait() // Its state is checked below.
	if status := victim.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || rows < 100 {
		t.Fatalf("%v after %d rows", victim.ProcessState, rows)
	}
	if _, err := os.Lstat(filepath.Join(path, "admin.sock")); err != nil {
		t.Fatalf("the server was not killed: %v", err)
	}
	return path, rows
}

// holdsRows fails unless both files of a folder have the rows, all without a gap.
func holdsRows(t *testing.T, folder string, rows int) {
	t.Helper()
	for name, prefix := range prefixes() {
		engine, err := bolt.Open(t.Context(), filepath.Join(folder, name), bolt.Options{CompactionInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := engine.Range(t.Context(), &pb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(prefix + "~")})
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Kvs) < rows || len(answer.Kvs) > rows+1 {
			t.Errorf("%s has %d rows, and %d were written", name, len(answer.Kvs), rows)
		}
		for i, kv := range answer.Kvs {
			if want := rowKey(name, i+1); !bytes.Equal(kv.Key, want) {
				t.Fatalf("%s has %s where %s should be", name, kv.Key, want)
			}
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCommandsAfterAKill runs each command on the files of a server that was killed: none of them reports damage or
// loses an acknowledged write.
func TestCommandsAfterAKill(t *testing.T) {
	succeed := func(t *testing.T, arguments ...string) string {
		t.Helper()
		code, said, errs := execute(t, "", arguments...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s%s", arguments, code, said, errs)
		}
		return said
	}
	tests := []struct {
		name string
		run  func(t *testing.T, path string, rows int)
	}{
		{name: "store check", run: func(t *testing.T, path string, _ int) {
			if said := succeed(t, "store", "check", "--data-dir="+path); said != "api.db: sound\nwork.db: sound\n" {
				t.Errorf("it said %q", said)
			}
		}},
		{name: "store defrag", run: func(t *testing.T, path string, rows int) {
			succeed(t, "store", "defrag", "--data-dir="+path)
			holdsRows(t, path, rows)
			succeed(t, "store", "check", "--data-dir="+path)
		}},
		{name: "backup", run: func(t *testing.T, path string, rows int) {
			file, other := filepath.Join(t.TempDir(), "backup.tar"), filepath.Join(t.TempDir(), "other")
			succeed(t, "backup", "--data-dir="+path, "-o", file)
			succeed(t, "restore", "--data-dir="+other, file)
			holdsRows(t, other, rows)
		}},
		{name: "restore", run: func(t *testing.T, path string, rows int) {
			file, older := filepath.Join(t.TempDir(), "backup.tar"), filepath.Join(t.TempDir(), "older")
			t.Run("another server", func(t *testing.T) {
				s, _ := serving(t, older)
				s.putRow(t, 1)
				succeed(t, "backup", "--data-dir="+older, "-o", file)
			})
			succeed(t, "restore", "--data-dir="+path, file)
			aside, err := filepath.Glob(filepath.Join(path, "before-restore-*"))
			if err != nil || len(aside) != 1 {
				t.Fatalf("the replaced files are in %v (%v)", aside, err)
			}
			holdsRows(t, aside[0], rows)
			holdsRows(t, path, 1)
			// The check below is for the replaced files.
			for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
				if err := os.Rename(filepath.Join(aside[0], name), filepath.Join(path, name)); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{name: "migrate", run: func(t *testing.T, path string, rows int) {
			etcd := testserver.RunEtcd(t, nil)
			said := succeed(t, "migrate", "--from=bbolt", "--to=etcd3", "--pad-revisions", "--data-dir="+path, "--etcd-servers="+etcd.Endpoints()[0])
			if !strings.Contains(said, "the same on both sides") {
				t.Errorf("it said %q", said)
			}
			for file := range prefixes() {
				answer, err := etcd.KV.Get(t.Context(), string(rowKey(file, rows)))
				if err != nil || len(answer.Kvs) != 1 {
					t.Errorf("etcd has %v for the last row of %s (%v)", answer, file, err)
				}
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, rows := killed(t)
			tt.run(t, path, rows)
			holdsRows(t, path, rows)
		})
	}
}
