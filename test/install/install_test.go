// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import "testing"

// TestInstall has one cluster for all scenes. Each begins without an installation and leaves none.
func TestInstall(t *testing.T) {
	s := newStage(t)
	for _, scene := range []struct {
		name string
		play func(*testing.T, *stage)
	}{
		{"Admitted", testAdmitted},
		{"Monitored", testMonitored},
		{"Manifests", testManifests},
		{"Certificates", testCertificates},
		{"Upgrade", testUpgrade},
		{"Uninstall", testUninstall},
		{"Replicas", testReplicas},
		{"Helm3", testHelm3},
		{"Migrate", testMigrate},
	} {
		t.Run(scene.name, func(t *testing.T) { scene.play(t, s) })
	}
}
