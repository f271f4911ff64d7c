// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import "github.com/configbutler/slipstream/pkg/registry/validation"

// resources returns the declarations of all served kinds. The options configure validation.
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
		changes().erase(),
		syncPolicies().erase(),
		syncPipelines().erase(),
		notificationSinks(options).erase(),
	}
}

// reference formats a reference. The namespace is empty if it is that of the referring object.
func reference(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// folder formats a folder of a repository, with a slash for the root.
func folder(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// shortHash is the length of an abbreviated commit hash, as in Git.
const shortHash = 7

// abbreviated abbreviates a commit hash.
func abbreviated(hash string) string { return hash[:min(shortHash, len(hash))] }
