// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// runMake runs make in the module's folder and returns what it prints.
func runMake(t *testing.T, arguments ...string) (stdout string) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, arguments...)...)
	command.Dir, command.Stderr = root, &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("make %v: %v\n%s%s", arguments, err, out, stderr.String())
	}
	return string(out)
}

// The interface of the make targets that tests, the demo and external scripts use.
func TestMakeTargets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	runMake(t, "dev-up", "DEV_DIR="+dir, "SERVER=0", "PODS=1")
	t.Cleanup(func() {
		if cluster, err := devcluster.Load(dir); err == nil {
			_ = cluster.Stop(t.Context())
		}
	})

	kubeconfig := filepath.Join(t.TempDir(), "jane")
	content := runMake(t, "dev-user", "DEV_DIR="+dir, "USER_NAME=jane", "USER_GROUPS=dev,ops")
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `. "$1/env"; "$KUBECTL" --kubeconfig="$2" auth whoami --output=jsonpath="{.status.userInfo.groups}"`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", dir, kubeconfig).CombinedOutput()
	if err != nil || string(out) != `["dev","ops","system:authenticated"]` {
		t.Errorf("got %v: %s, want a user in dev and ops", err, out)
	}

	script = `. "$1/env"; export KUBECONFIG; "$KUBECTL" get nodes --output=name`
	out, err = exec.CommandContext(t.Context(), "sh", "-c", script, "sh", dir).CombinedOutput()
	if err != nil || string(out) != "node/node-1\nnode/node-2\n" {
		t.Errorf("want two nodes, got %v: %s", err, out)
	}

	runMake(t, "dev-down", "DEV_DIR="+dir)
	checkStopped(t, dir)
	runMake(t, "dev-down", "DEV_DIR="+dir)
}
