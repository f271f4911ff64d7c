// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/golden"
)

// version matches the version, which differs in each release.
var version = regexp.MustCompile(`^Slipstream v\S+ is`)

// noted are the values that change the release notes.
var noted = map[string]string{
	"defaults":     "{}",
	"cert-manager": "{tls: {mode: cert-manager}}",
	"secret": "{tls: {mode: secret, secretName: mine}, watch: {types: list, list: [{group: apps, resources: [deployments]}], " +
		"secrets: false}}",
	"etcd":         `{replicas: 3, storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}, watch: {types: any}}`,
	"pipelines":    "{pipelines: {enabled: true}, watch: {secrets: false}}",
	"environments": "{environments: {sourceNamespaces: [shop]}, watch: {secrets: false}}",
	"migration":    `{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}, migrate: {from: bbolt}}}`,
	"page":         "{page: {enabled: true, url: https://slipstream.example.com, tls: {mode: cert-manager}}}",
	"page-secret":  "{page: {enabled: true, url: https://slipstream.example.com, tls: {mode: secret}}}",
	"keys":         "{encryption: {configSecret: keys}, attribution: {admission: {mode: none}}}",
}

// The notes are those that helm prints after an installation.
func TestNotes(t *testing.T) {
	for name, values := range noted {
		t.Run(name, func(t *testing.T) {
			got := notes(t, values)
			golden.Expect(t, filepath.Join("testdata", "notes", name+".txt"), got)
			for _, line := range strings.Split(got, "\n") {
				if len(line) > 140 {
					t.Errorf("line is too long for a terminal: %s", line)
				}
			}
		})
	}
}

// notes returns the notes that helm prints about a release with values. Helm 3 prints them only with a cluster.
func notes(t *testing.T, values string) string {
	t.Helper()
	building, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	helm, err := programs.Helm.Build(building, root(t))
	if err != nil {
		t.Fatalf("failed to build helm: %v", err)
	}
	command := exec.CommandContext(t.Context(), helm, "install", "mine", chartFile(t), "--namespace="+namespace,
		"--dry-run=client", "--values=-")
	command.Env = []string{"HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(values)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	_, notes, found := strings.Cut(string(out), "\nNOTES:\n")
	if !found {
		t.Fatalf("helm printed no notes:\n%s", out)
	}
	return version.ReplaceAllString(notes, "Slipstream VERSION is")
}
