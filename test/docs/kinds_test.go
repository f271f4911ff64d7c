// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// servedKind is a kind as discovery has it.
type servedKind struct {
	kind string
	// names are those that kubectl knows it by.
	names []string
	// written says that people may create it.
	written bool
}

// Every kind that is served has a page that is run. What people write is applied there from a manifest, what the server
// writes is shown.
func wantPageForEachKind(t *testing.T, cluster *devcluster.Cluster) {
	t.Helper()
	root := moduleRoot(t)
	kinds := servedKinds(t, cluster)
	if len(kinds) == 0 {
		t.Fatal("discovery names no kinds")
	}
	for _, each := range kinds {
		page := "docs/kinds/" + strings.ToLower(each.kind) + ".md"
		if !slices.Contains(runnable(), page) {
			t.Errorf("the kind %s has no page that is run: want %s", each.kind, page)
			continue
		}
		if !showsKind(t, root, page, each) {
			t.Errorf("%s neither applies a manifest of the kind nor, if the server writes it, gets one", page)
		}
	}
}

// servedKinds asks the cluster for the kinds that can be read; what else is served are doors for other API servers.
func servedKinds(t *testing.T, cluster *devcluster.Cluster) []servedKind {
	t.Helper()
	out, err := cluster.Kubectl(cluster.Admin()).Run(t.Context(),
		"api-resources", "--api-group=configbutler.ai", "--verbs=get", "--no-headers", "--output=wide")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []servedKind
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		at := slices.Index(fields, "configbutler.ai/v1alpha1")
		if at < 1 || len(fields) < at+4 {
			t.Fatalf("a line that names no kind: %s", line)
		}
		kind := servedKind{kind: fields[at+2], names: []string{fields[0], strings.ToLower(fields[at+2])}}
		if at == 2 {
			kind.names = append(kind.names, strings.Split(fields[1], ",")...)
		}
		kind.written = slices.Contains(strings.Split(fields[at+3], ","), "create")
		kinds = append(kinds, kind)
	}
	return kinds
}

// applied finds the files of a script that are applied.
var applied = regexp.MustCompile(`kubectl apply -f (artifacts/\S+\.yaml)`)

// showsKind says whether the commands of a page apply, or get, an object of the kind.
func showsKind(t *testing.T, root, page string, each servedKind) bool {
	t.Helper()
	for _, b := range shellBlocks(t, root, page) {
		if !each.written {
			if slices.ContainsFunc(each.names, func(name string) bool { return strings.Contains(b.script, "kubectl get "+name+" ") }) {
				return true
			}
			continue
		}
		for _, match := range applied.FindAllStringSubmatch(b.script, -1) {
			content, err := os.ReadFile(filepath.Join(root, match[1]))
			if err != nil {
				t.Errorf("%s: %v", b.place, err)
			}
			if regexp.MustCompile(`(?m)^kind: ` + each.kind + `$`).Match(content) {
				return true
			}
		}
	}
	return false
}
