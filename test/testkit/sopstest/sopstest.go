// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sopstest decrypts files with the command sops.
package sopstest

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// patience is the timeout for building sops on a busy machine.
const patience = 15 * time.Minute

// Command returns the path of the command sops. The first call builds it, which takes a minute or two.
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
		t.Fatalf("failed to build sops: %v", err)
	}
	return command
}

// Open decrypts a YAML file with sops and a private key of age, and returns the output. sops checks the MAC of the file.
func Open(t testing.TB, file []byte, privateKey string) (string, error) {
	t.Helper()
	return decrypt(t, file, privateKey, "--input-type=yaml", "--output-type=yaml")
}

// OpenAsFlux decrypts a YAML file with sops as Flux does: after Kustomize has added annotations, as JSON with sorted keys, and without
// checking the MAC.
func OpenAsFlux(t testing.TB, file []byte, privateKey string, added map[string]string) (string, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(file, &object.Object); err != nil {
		return "", err
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, added)
	object.SetAnnotations(annotations)
	text, err := object.MarshalJSON()
	if err != nil {
		return "", err
	}
	return decrypt(t, text, privateKey, "--input-type=json", "--output-type=json", "--ignore-mac")
}

func decrypt(t testing.TB, file []byte, privateKey string, options ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), Command(t), slices.Concat([]string{"decrypt"}, options, []string{"/dev/stdin"})...)
	// This excludes the user's configuration and keys.
	command.Env = []string{"HOME=" + t.TempDir(), "SOPS_AGE_KEY=" + privateKey}
	command.Stdin = strings.NewReader(string(file))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("sops decrypt: %w: %s", err, stderr.String())
	}
	return string(out), nil
}
