// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

// previousTag is the image tag of the previous version.
const previousTag = "previous"

var previousFlag = flag.String("previous", "", "commit of the version that is upgraded from, instead of that in test/testkit/upgradetest/previous")

// testUpgrade installs the previous version with its own chart, fills its store, and upgrades it.
func testUpgrade(t *testing.T, s *testCluster) {
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
