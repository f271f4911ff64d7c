// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// TestSecretsOfSigning checks that only cosign gets the key and its password, and neither what is compiled nor the arguments of a program.
func TestSecretsOfSigning(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	shims, files := t.TempDir(), t.TempDir()
	for _, name := range []string{"cosign", "go", "release"} {
		record := "#!/bin/sh\n{ echo \"arguments: $*\"; env; } >> " + filepath.Join(shims, name+".log") + "\n"
		if err := os.WriteFile(filepath.Join(shims, name), []byte(record), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(files, "slipstream-1.2.3.tgz"), "")
	write(t, filepath.Join(files, "SHA256SUMS"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  slipstream-1.2.3.tgz\n")
	for key, secrets := range map[string]map[string]string{
		"cosign.key":               {"COSIGN_PASSWORD": "secret one"},
		"env://SLIPSTREAM_KEY":     {"COSIGN_PASSWORD": "secret one", "SLIPSTREAM_KEY": "secret two"},
		"env://COSIGN_PRIVATE_KEY": {"COSIGN_PASSWORD": "secret\nof two lines, secret", "COSIGN_PRIVATE_KEY": "secret two"},
	} {
		publish := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "publish-release.sh"), "v1.2.3", files, "", key)
		publish.Env = append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"))
		for name, value := range secrets {
			publish.Env = append(publish.Env, name+"="+value)
		}
		// Without the tools, they are built first. The shims build none, so that it fails.
		if output, err := publish.CombinedOutput(); err == nil {
			t.Fatalf("%s: no tools, and no error:\n%s", key, output)
		}
		wantNoSecret(t, filepath.Join(shims, "go.log"))
		built := exec.CommandContext(t.Context(), publish.Path, publish.Args[1:]...)
		built.Env = append([]string{"RELEASE_TOOLS=" + shims}, publish.Env...)
		if output, err := built.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", key, err, output)
		}
		wantNoSecret(t, filepath.Join(shims, "release.log"))
		if _, err := os.Stat(filepath.Join(shims, "go.log")); err == nil {
			t.Errorf("with the key %s and tools, go is run", key)
		}
		signed := take(t, filepath.Join(shims, "cosign.log"))
		for name, value := range secrets {
			if !strings.Contains(signed, name+"="+value+"\n") {
				t.Errorf("with the key %s, cosign does not get %s:\n%s", key, name, signed)
			}
		}
		for line := range strings.Lines(signed) {
			if strings.HasPrefix(line, "arguments:") && strings.Contains(line, "secret") {
				t.Errorf("with the key %s, cosign is run with %s", key, line)
			}
		}
	}
}

// wantNoSecret checks that a program was run, without a secret.
func wantNoSecret(t *testing.T, log string) {
	t.Helper()
	if ran := take(t, log); ran == "" || strings.Contains(ran, "secret") {
		t.Errorf("%s:\n%s", log, ran)
	}
}

// TestPushNeedsKey checks that nothing is pushed without signatures unless that is wanted.
func TestPushNeedsKey(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	push := func(variable string) string {
		publish := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "publish-release.sh"), "v1.2.3", t.TempDir(), "127.0.0.1:1/slipstream")
		publish.Env = append(os.Environ(), "RELEASE_TOOLS="+t.TempDir(), variable)
		output, err := publish.CombinedOutput()
		if err == nil {
			t.Errorf("with %s, nothing was pushed, and there is no error:\n%s", variable, output)
		}
		return string(output)
	}
	const want = "set RELEASE_KEY, or RELEASE_UNSIGNED=1"
	if output := push("RELEASE_UNSIGNED=0"); !strings.Contains(output, want) {
		t.Errorf("without a key: %s", output)
	}
	if output := push("RELEASE_UNSIGNED=1"); strings.Contains(output, want) {
		t.Errorf("with RELEASE_UNSIGNED=1: %s", output)
	}
}

// take returns the content of a file and removes it.
func take(t *testing.T, path string) string {
	t.Helper()
	content := read(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return content
}
