// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import "github.com/configbutler/slipstream/pkg/registry/validation"

// resources declares every kind that is served; options say what validation admits.
func resources(options validation.Options) []resource {
	return []resource{
		gitRepoConfigs(options).erase(),
		gitDestinations().erase(),
		gitDestinationStatuses().erase(),
		watchRules().erase(),
		clusterWatchRules().erase(),
		appCatalogs().erase(),
		catalogWorkloads().erase(),
		environments().erase(),
		environmentDependencies().erase(),
		syncStatuses().erase(),
		syncPolicies().erase(),
		syncPipelines().erase(),
	}
}

// reference names an object; the namespace is left out when it is the referring object's own.
func reference(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// folder names a folder of a repository; the root reads as a slash.
func folder(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// shortHash is how many characters of a commit's hash a column shows, as git does.
const shortHash = 7

// abbreviated is the beginning of a commit's hash.
func abbreviated(hash string) string { return hash[:min(shortHash, len(hash))] }
