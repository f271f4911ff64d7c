// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Resolver tells what a rule means, as the controllers that carry it out understand it.
type Resolver interface {
	// Resolve returns the types that a selection means now, and says in a clause each what in it matches none for
	// certain. It is not known while the types of the cluster are not.
	Resolve(selection Selection) (types []schema.GroupResource, unmatched []string, known bool)
	// Preset is what a rule means that names no resources; none is every resource.
	Preset() []schema.GroupResource
}

// Selection is what a rule says about types. The fields are those of a rule.
type Selection struct {
	APIGroups, APIVersions, Resources []string
	// Scope leaves types of the other scope out.
	Scope v1alpha1.ResourceScope
}
