// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// actorOf is who a user is. behind is who impersonates them, if anybody does.
func actorOf(user authenticationv1.UserInfo, behind string) attribution.Actor {
	return attribution.Actor{
		Username: user.Username, Groups: user.Groups, ImpersonatedBy: behind,
		Name: claim(user.Extra, "name"), Email: claim(user.Extra, "email"),
	}
}

// claim is what an identity provider says of a user: the extra field of that name, or else the first whose name ends in
// it after a slash, as the fields of a structured authentication configuration have to be called.
func claim(extra map[string]authenticationv1.ExtraValue, name string) string {
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
