// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// version is what each release has another of.
var version = regexp.MustCompile(`^Slipstream v\S+ is`)

// noted are the values that make a difference for whoever has just installed.
var noted = map[string]string{
	"defaults":     "{}",
	"cert-manager": "{tls: {mode: cert-manager}}",
	"secret":       "{tls: {mode: secret, secretName: mine}, watch: {types: list, list: [{group: apps, resources: [deployments]}], secrets: false}}",
	"etcd":         `{replicas: 3, storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}, watch: {types: any}}`,
	"pipelines":    "{pipelines: {enabled: true}, watch: {secrets: false}}",
	"environments": "{environments: {sourceNamespaces: [shop]}, watch: {secrets: false}}",
	"migration":    `{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}, migrate: {from: bbolt}}}`,
	"keys":         "{encryption: {configSecret: keys}, attribution: {admission: {mode: none}}}",
}

// What helm says after it has installed.
func TestNotes(t *testing.T) {
	for name, values := range noted {
		t.Run(name, func(t *testing.T) {
			got := notes(t, values)
			golden := filepath.Join("testdata", "notes", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			for _, line := range strings.Split(got, "\n") {
				if len(line) > 140 {
					t.Errorf("too long for a terminal: %s", line)
				}
			}
		})
	}
}

// notes are what helm says of a release with values. Helm 3 says it only to who has a cluster.
func notes(t *testing.T, values string) string {
	t.Helper()
	building, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	helm, err := programs.Helm.Build(building, root(t))
	if err != nil {
		t.Fatalf("building helm: %v", err)
	}
	command := exec.CommandContext(t.Context(), helm, "install", "mine", chartFile(t), "--namespace="+namespace,
		"--dry-run=client", "--values=-")
	command.Env = []string{"HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(values)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaint.String())
	}
	_, notes, found := strings.Cut(string(out), "\nNOTES:\n")
	if !found {
		t.Fatalf("helm says nothing:\n%s", out)
	}
	return version.ReplaceAllString(notes, "Slipstream VERSION is")
}
