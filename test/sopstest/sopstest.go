// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sopstest answers whether the command sops opens a file, and what it finds.
package sopstest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// patience is what the build of sops may take on a busy machine.
const patience = 15 * time.Minute

// Command returns the path of the command sops. It is built the first time, which takes
// a minute or two.
func Command(t testing.TB) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command, err := programs.Sops.Build(ctx, root)
	if err != nil {
		t.Fatalf("building sops: %v", err)
	}
	return command
}

// Open lets sops decrypt a YAML file with a private key of age, and returns what it
// prints. The file has to pass all its checks.
func Open(t testing.TB, file []byte, privateKey string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), Command(t), "decrypt", "--input-type=yaml", "--output-type=yaml", "/dev/stdin")
	// No configuration and no key but the one given.
	command.Env = []string{"HOME=" + t.TempDir(), "SOPS_AGE_KEY=" + privateKey}
	command.Stdin = strings.NewReader(string(file))
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("sops decrypt: %w: %s", err, complaint.String())
	}
	return string(out), nil
}
