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

// servedKind is a kind in discovery.
type servedKind struct {
	kind string
	// names are the resource names that kubectl accepts.
	names []string
	// written is true if users can create objects of the kind.
	written bool
}

// wantPageForEachKind expects every served kind to have a page that is run. The page must apply a manifest of a kind that users write,
// and get an object of a kind that the server writes.
func wantPageForEachKind(t *testing.T, cluster *devcluster.Cluster) {
	t.Helper()
	root := moduleRoot(t)
	kinds := servedKinds(t, cluster)
	if len(kinds) == 0 {
		t.Fatal("discovery returned no kinds")
	}
	for _, each := range kinds {
		page := "docs/kinds/" + strings.ToLower(each.kind) + ".md"
		if !slices.Contains(runnable(), page) {
			t.Errorf("kind %s has no page that is run: want %s", each.kind, page)
			continue
		}
		if !showsKind(t, root, page, each) {
			t.Errorf("%s does not apply or get an object of its kind", page)
		}
	}
}

// servedKinds returns the readable kinds of the cluster. Other resources are for requests of API servers.
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
			t.Fatalf("unexpected line of api-resources: %s", line)
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

// applied matches the files that a script applies.
var applied = regexp.MustCompile(`kubectl apply -f (artifacts/\S+\.yaml)`)

// showsKind reports whether the commands of a page apply or get an object of the kind.
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
