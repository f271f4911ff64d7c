// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"maps"
	"slices"
	"strings"
)

// NewActor is who a user is, by what an API server knows of them.
func NewActor[V ~[]string](username string, groups []string, extra map[string]V) Actor {
	return Actor{Username: username, Groups: groups, Name: claim(extra, "name"), Email: claim(extra, "email")}
}

// claim is what an identity provider says of a user: the extra field of that name, or else the first whose name ends in
// it after a slash, as the fields of a structured authentication configuration have to be called.
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
