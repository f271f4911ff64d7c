// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import "testing"

// TestInstall runs its subtests on one cluster. Each starts and ends without an installation.
func TestInstall(t *testing.T) {
	s := newTestCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *testCluster)
	}{
		{"Admitted", testAdmitted},
		{"Monitored", testMonitored},
		{"Manifests", testManifests},
		{"Certificates", testCertificates},
		{"Page", testPage},
		{"Upgrade", testUpgrade},
		{"Uninstall", testUninstall},
		{"Replicas", testReplicas},
		{"Helm3", testHelm3},
		{"Migrate", testMigrate},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}
