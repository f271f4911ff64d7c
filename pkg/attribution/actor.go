// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"maps"
	"slices"
	"strings"
)

// NewActor returns the Actor for a user as an API server authenticated it.
func NewActor[V ~[]string](username string, groups []string, extra map[string]V) Actor {
	return Actor{Username: username, Groups: groups, Name: claim(extra, "name"), Email: claim(extra, "email")}
}

// claim returns a claim of the identity provider about a user: the extra field of that name, or else the first field
// whose name ends in it after a slash, as structured authentication configuration requires.
func claim[V ~[]string](extra map[string]V, name string) string {
	keys := slices.Sorted(maps.Keys(extra))
	for _, key := range append([]string{name}, keys...) {
		if key != name && !strings.HasSuffix(key, "/"+name) {
			continue
		}
		for _, value := range extra[key] {
			if value != "" {
				return value
			}
		}
	}
	return ""
}
