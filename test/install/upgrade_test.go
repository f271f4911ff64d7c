// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	_ "embed"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// previousTag is the image tag of the previous version.
const previousTag = "previous"

// previousRevision is the commit of the previous version, which each release updates. It is empty before the first release: then the
// version in HEAD is upgraded to itself.
//
//go:embed testdata/previous
var previousRevision string

var previousFlag = flag.String("previous", "", "commit of the version that is upgraded from, instead of that in testdata/previous")

// previousVersion checks out the previous version. It returns an empty path if the clone is shallow and lacks the commit.
func previousVersion(t *testing.T, root string) string {
	t.Helper()
	revision := strings.TrimSpace(previousRevision)
	switch {
	case *previousFlag != "":
		revision = *previousFlag
	case revision == "":
		revision = "HEAD"
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", revision+"^{commit}").Run(); err != nil {
		if !isShallow(t, root) {
			t.Fatalf("no commit %s, which testdata/previous or -previous names as the previous version", revision)
		}
		return ""
	}
	commit, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", revision+"^{commit}").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "previous")
	for _, arguments := range [][]string{
		{"clone", "--quiet", "--shared", "--no-checkout", root, folder},
		{"-C", folder, "checkout", "--quiet", strings.TrimSpace(string(commit))},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("check out the previous version: %v\n%s", err, out)
		}
	}
	return folder
}

// isShallow reports whether a clone is shallow.
func isShallow(t *testing.T, root string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--is-shallow-repository").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "true"
}

// isWording reports whether a path is the reason or the message of a condition, which may differ between versions.
func isWording(path cmp.Path) bool {
	last, ok := path.Last().(cmp.MapIndex)
	if !ok || !strings.Contains(path.GoString(), `["conditions"]`) {
		return false
	}
	key := last.Key().String()
	return key == "reason" || key == "message"
}

// isOfVersion reports whether a path is a status field or condition that only the newer version has, or a setting that it has removed.
func isOfVersion(path cmp.Path) bool {
	last, ok := path.Last().(cmp.MapIndex)
	if !ok {
		return false
	}
	before, after := last.Values()
	isAdded, isGone := !before.IsValid(), !after.IsValid()
	return isAdded && strings.Contains(path.GoString(), ".Status") || isGone && last.Key().String() == "reminders"
}

// conditionsByType compares conditions by their type, because another version may have more.
var conditionsByType = cmp.FilterPath(isConditions, cmp.Transformer("byType", func(conditions []any) map[string]any {
	byType := map[string]any{}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok {
			byType[fmt.Sprint(fields["type"])] = condition
		}
	}
	return byType
}))

// isConditions reports whether a path is the list of conditions of an object.
func isConditions(path cmp.Path) bool {
	list, ok := path.Index(-2).(cmp.MapIndex)
	_, isAsserted := path.Last().(cmp.TypeAssertion)
	return ok && isAsserted && list.Key().String() == "conditions"
}

// testUpgrade installs the previous version with its own chart, fills its store, and upgrades it.
func testUpgrade(t *testing.T, s *testCluster) {
	if s.previous == "" {
		t.Skipf("this clone does not have the previous version, %s: git fetch --unshallow", strings.TrimSpace(previousRevision))
	}
	defer s.remove(t)
	const held = holdings("upgraded")
	s.Apply(t, restrictedNamespace+"---"+held.namespaces())
	s.releaseBy(t, s.helm, filepath.Join(s.previous, chart), held.values(`image={"tag": "`+previousTag+`"}`)...)
	m := s.fill(t, held)
	before := s.settled(t)
	commits := m.commits(t)
	informed := s.inform(t, m.namespace)

	requests := s.request(t, m.namespace)
	s.release(t, held.values()...)
	requests.stop(t, "upgrade")
	image := s.Run(t, "get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=server",
		"-o", "jsonpath={.items[*].spec.containers[*].image}")
	if want := repository + ":" + version(t, s.root); image != want {
		t.Errorf("image = %q, want %q", image, want)
	}
	s.unchanged(t, before, cmp.FilterPath(isWording, cmp.Ignore()), cmp.FilterPath(isOfVersion, cmp.Ignore()), conditionsByType)
	informed.expectWorking(t)
	if now := m.commits(t); now != commits {
		t.Errorf("commits after the upgrade:\n%s\nwant\n%s", now, commits)
	}
	m.expectWorking(t)
}
