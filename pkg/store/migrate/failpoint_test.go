// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package migrate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/migrate"
)

// What a child process migrates, and where to.
const (
	crashDirectory = "SLIPSTREAM_TEST_MIGRATE_DIRECTORY"
	crashEtcd      = "SLIPSTREAM_TEST_MIGRATE_ETCD"
)

// TestMigrateInChild is the child process of TestKilledIntoFiles.
func TestMigrateInChild(t *testing.T) {
	path := os.Getenv(crashDirectory)
	if path == "" {
		t.Skip("plays the victim of TestKilledIntoFiles")
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Getenv(crashEtcd)}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	dir := openDirectory(t, path)
	if _, _, err := migrate.IntoDirectory(t.Context(), dir, etcd, prefixes(), migrate.Options{Replace: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func openDirectory(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKilledIntoFiles kills a migration to files at each step. The next process that opens the directory finds the old
// files or the new ones, and a further migration completes it.
func TestKilledIntoFiles(t *testing.T) {
	etcd := runEtcd(t)
	for i := range 300 {
		put(t, etcd, fmt.Sprintf("/registry/%d", i), "etcd")
		put(t, etcd, fmt.Sprintf("/registry-work/%d", i), "etcd")
	}
	want := contentOf(t, etcd, "/registry")
	for _, tt := range []struct {
		step     string
		migrated bool
	}{
		{step: "restore-begun=kill"},
		{step: "migration-filled=kill"},
		{step: "restore-staged=kill"},
		{step: "restore-decided=kill", migrated: true},
		{step: "restore-aside=kill", migrated: true},
		{step: "restore-moved=kill", migrated: true},
		{step: "restore-aside=kill@2", migrated: true},
		{step: "restore-moved=kill@2", migrated: true},
		{step: "restore-installed=kill", migrated: true},
	} {
		t.Run(tt.step, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			dir := openDirectory(t, path)
			withFile(t, dir, datadir.APIFile, func(_ *bolt.Engine, client *clientv3.Client) { put(t, client, "/registry/old", "file") })
			withFile(t, dir, datadir.WorkFile, func(_ *bolt.Engine, client *clientv3.Client) { put(t, client, "/registry-work/old", "file") })
			expected := contentOfFiles(t, dir)
			if err := dir.Close(); err != nil {
				t.Fatal(err)
			}
			migrateInChild(t, path, etcd, tt.step)
			if tt.migrated {
				expected = want
			}
			dir = openDirectory(t, path)
			sameContent(t, contentOfFiles(t, dir), expected)
			if err := dir.Close(); err != nil {
				t.Fatal(err)
			}
			migrateInChild(t, path, etcd, "")
			dir = openDirectory(t, path)
			sameContent(t, contentOfFiles(t, dir), want)
			if err := dir.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// migrateInChild runs a child that is killed at a step, or not at all if the step is empty.
func migrateInChild(t *testing.T, path string, etcd *clientv3.Client, step string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMigrateInChild$")
	child.Env = append(os.Environ(), crashDirectory+"="+path, crashEtcd+"="+etcd.Endpoints()[0], "SLIPSTREAM_FAILPOINTS="+step)
	out, err := child.CombinedOutput()
	status := child.ProcessState.Sys().(syscall.WaitStatus)
	if killed := status.Signaled() && status.Signal() == syscall.SIGKILL; killed != (step != "") {
		t.Fatalf("killed at %q: %v (%v)\n%s", step, killed, err, out)
	}
	if step == "" && err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
