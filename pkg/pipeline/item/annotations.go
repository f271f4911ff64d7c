// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import "strings"

// withoutConfigurations copies annotations without those that carry a configuration. Nothing left is nil.
func withoutConfigurations(annotations map[string]string) map[string]string {
	var left map[string]string
	for key, value := range annotations {
		if carriesConfiguration(key) {
			continue
		}
		if left == nil {
			left = make(map[string]string, len(annotations))
		}
		left[key] = value
	}
	return left
}

// carriesConfiguration is true of annotations in which a tool keeps an object as it was applied or last seen, with its data. Most
// have last-applied in their names (kubectl.kubernetes.io/last-applied-configuration, banzaicloud.com/last-applied); those that call it
// otherwise are listed.
func carriesConfiguration(key string) bool {
	switch key {
	case "objectset.rio.cattle.io/applied", // Rancher and K3s
		"kopf.zalando.org/last-handled-configuration",
		"configmanagement.gke.io/declared-config",
		"configsync.gke.io/declared-fields":
		return true
	}
	if strings.HasPrefix(key, "kapp.k14s.io/original") { // with the difference to it in kapp.k14s.io/original-diff
		return true
	}
	lower := strings.ToLower(key)
	return strings.Contains(lower, "last-applied") || strings.Contains(lower, "lastapplied")
}
