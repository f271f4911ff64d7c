// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package annotation

import "strings"

// HoldsConfiguration reports whether a tool stores in an annotation the object as applied or last seen, a part of it,
// or the difference to it. Controllers maintain such annotations for themselves and write them again where they are
// missing.
func HoldsConfiguration(key string) bool {
	switch key {
	case "configmanagement.gke.io/declared-config", // Config Sync
		"configsync.gke.io/declared-fields",
		"consul.hashicorp.com/original-pod",
		"dev.okteto.com/deployment", // Okteto: the previous manifest
		"dev.okteto.com/statefulset",
		"flagger.kubernetes.io/original-configuration",
		"ksonnet.io/managed",
		"objectset.rio.cattle.io/applied", // Rancher, Fleet and K3s
		"openshift.io/encoded-deployment-config",
		"operator.cloud.crate.io/last", // CrateDB's operator, by Kopf
		"percona.com/last-config-hash", // the whole object in base64, despite the name
		"rollouts.kruise.io/original-spec-configuration":
		return true
	}
	for _, start := range [...]string{
		"debug.werf.io/repair-patch", // with repair-patch-errors
		"kapp.k14s.io/original",      // with original-diff, original-diff-md5 and original-diff-full
	} {
		if strings.HasPrefix(key, start) {
			return true
		}
	}
	return isNamedForConfiguration(key)
}

// isNamedForConfiguration recognizes the names that many tools give such an annotation below their own domains:
// kubectl.kubernetes.io/last-applied-configuration, banzaicloud.com/last-applied,
// kopf.zalando.org/last-handled-configuration (the domain is configurable, and there are suffixes),
// mongodb.com/v1.lastSuccessfulConfiguration, hazelcast.com/last-successful-spec.
func isNamedForConfiguration(key string) bool {
	words := strings.ReplaceAll(strings.ToLower(key), "-", "")
	for _, name := range [...]string{
		"lastapplied", "lasthandledconfig", "lastsuccessfulconfig", "lastsuccessfulspec", "lastupdateconfig", "previousspec",
	} {
		if strings.Contains(words, name) {
			return true
		}
	}
	return false
}
