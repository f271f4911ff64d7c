// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Resolver resolves the selections of rules as the controllers do.
type Resolver interface {
	// Resolve returns the types that a selection matches now, and a clause for each part of it that certainly matches none. known is false
	// while the types of the cluster are unknown.
	Resolve(selection Selection) (types []schema.GroupResource, unmatched []string, known bool)
	// Preset returns the types of a rule that names no resources; none stands for every type.
	Preset() []schema.GroupResource
}

// Selection is what a rule selects by type. The fields are those of a rule.
type Selection struct {
	APIGroups, APIVersions, Resources []string
	// Scope excludes types of the other scope.
	Scope v1alpha1.ResourceScope
}
