// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	_ "embed"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/upgradetest"
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
	if _, err := upgradetest.Git(t.Context(), root, "cat-file", "-e", revision+"^{commit}"); err != nil {
		if !upgradetest.IsShallow(t, root) {
			t.Fatalf("no commit %s, which testdata/previous or -previous names as the previous version", revision)
		}
		return ""
	}
	return upgradetest.Checkout(t, root, revision)
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
	s.unchanged(t, before, upgradetest.BetweenVersions())
	informed.expectWorking(t)
	if now := m.commits(t); now != commits {
		t.Errorf("commits after the upgrade:\n%s\nwant\n%s", now, commits)
	}
	m.expectWorking(t)
}
