// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestMigration migrates the stores from files to etcd with two replicas, and back. Objects must be preserved, and no commit
// without a change may be made.
func TestMigration(t *testing.T) {
	t.Parallel()
	program := clustertest.Program(t, "cmd/slipstream")
	s := newTestCluster(t, devcluster.Options{ServerProgram: program})
	client := mirrortest.Client(t, s.Admin())
	m := s.newMirror(t, "moved")
	write(t, client, "moved", "first", "x")
	m.Watch(t, "config", "configmaps")
	m.Equal(t, client)
	m.Settled(t)
	dataDir := s.Env(devcluster.EnvDataDir)
	inCluster := []string{"--namespace=" + devcluster.ServerNamespace, "--kubeconfig=" + string(s.Admin())}
	migrate := func(arguments ...string) {
		arguments = append(append([]string{"migrate"}, arguments...), inCluster...)
		runProgram(t, program, append(arguments, "--data-dir="+dataDir, "--etcd-servers="+s.EtcdURL())...)
	}
	runningChecks(t, program, dataDir)

	before, seeded := objects(t, s), m.Commits(t)
	// Pending changes are migrated, too.
	write(t, client, "moved", "pending", "x")
	stop(t, s, syscall.SIGKILL)
	runProgram(t, program, "store", "defrag", "--data-dir="+dataDir)
	migrate("--from=bbolt", "--to=etcd3", "--pad-revisions")
	start(t, s, devcluster.StorageEtcd3, 2)
	m.Ready(t, "moved", "watchrule/config")
	sameObjects(t, objects(t, s), before)
	m.Equal(t, client)
	write(t, client, "moved", "second", "x")
	m.Equal(t, client)
	m.Settled(t)

	// The encryption keys in the data directory do not include the one used after the rotation in etcd.
	runProgram(t, program, append([]string{"store", "rotate-key", "--storage-backend=etcd3"}, inCluster...)...)
	before = objects(t, s)
	stop(t, s, syscall.SIGTERM)
	migrate("--from=etcd3", "--to=bbolt", "--replace-target")
	key := s.Run(t, "-n", devcluster.ServerNamespace, "get", "secret/slipstream-encryption",
		"-o", `go-template={{index .data "encryption.yaml" | base64decode}}`)
	if content, err := os.ReadFile(filepath.Join(dataDir, "encryption.yaml")); err != nil || string(content) != key {
		t.Errorf("encryption.yaml was not replaced by the keys of the Secret: %v", err)
	}
	runProgram(t, program, "store", "check", "--data-dir="+dataDir)
	start(t, s, devcluster.StorageBbolt, 1)
	m.Ready(t, "moved", "watchrule/config")
	sameObjects(t, objects(t, s), before)
	write(t, client, "moved", "third", "x")
	m.Equal(t, client)
	m.Settled(t)
	m.Intact(t)
	// One commit each for pending, second and third.
	if first, last := number(t, seeded), number(t, m.Commits(t)); last != first+3 {
		log, _ := m.Git(t.Context(), "log", "--stat", "main")
		t.Errorf("%d commits, want %d:\n%s", last, first+3, log)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// runningChecks tests the commands that are allowed while the server runs, and those that are not.
func runningChecks(t *testing.T, program, dataDir string) {
	t.Helper()
	if out := runProgram(t, program, "store", "check", "--data-dir="+dataDir); !strings.Contains(out, "api.db: sound") ||
		!strings.Contains(out, "work.db: sound") {
		t.Errorf("store check of a running server: %s", out)
	}
	for _, arguments := range [][]string{
		{"store", "defrag"},
		{"migrate", "--from=bbolt", "--to=etcd3", "--etcd-servers=http://127.0.0.1:1"},
	} {
		out, err := exec.CommandContext(t.Context(), program, append(arguments, "--data-dir="+dataDir)...).CombinedOutput()
		if err == nil {
			t.Errorf("%q of a running server: %s", arguments, out)
		}
	}
}

// runProgram runs a command of the server's program and fails the test if the command fails.
func runProgram(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", arguments, err, out)
	}
	t.Logf("%q:\n%s", arguments, out)
	return string(out)
}

func stop(t *testing.T, s *testCluster, signal syscall.Signal, replicas ...int) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal, replicas...); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, s *testCluster, storage devcluster.Storage, replicas int) {
	t.Helper()
	if err := s.UseStorage(t.Context(), storage, replicas); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// object is the part of an object that a migration must preserve, and its resourceVersion, which must grow.
type object struct {
	identity string
	version  int64
}

// objects returns the server's own objects by kind and name.
func objects(t *testing.T, s *testCluster) map[string]object {
	t.Helper()
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Namespace, Name, UID, ResourceVersion string
				CreationTimestamp                     string
				Generation                            int64
				Labels, Annotations                   map[string]string
			}
			Spec json.RawMessage
		}
	}
	text := s.Run(t, "get", "gitrepoconfigs,gitdestinations,watchrules,clusterwatchrules", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]object{}
	for _, item := range list.Items {
		version, err := strconv.ParseInt(item.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		metadata := item.Metadata
		metadata.ResourceVersion = ""
		found[item.Kind+" "+metadata.Namespace+"/"+metadata.Name] = object{identity: fmt.Sprintf("%+v %s", metadata, item.Spec), version: version}
	}
	if len(found) < 3 {
		t.Fatalf("too few objects: %v", found)
	}
	return found
}

// sameObjects fails unless objects are unchanged and have higher resourceVersions.
func sameObjects(t *testing.T, after, before map[string]object) {
	t.Helper()
	highest := int64(0)
	for was := range maps.Values(before) {
		highest = max(highest, was.version)
	}
	for name, was := range before {
		is, found := after[name]
		if !found || is.identity != was.identity {
			t.Errorf("%s = %v, want %v", name, is, was)
		}
		if is.version <= highest {
			t.Errorf("resourceVersion of %s = %d, want more than %d", name, is.version, highest)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects, want %d", len(after), len(before))
	}
}
