// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Missing returns those of permissions that a user does not have, each with the verbs that are missing, and the first ones
// when there are more than most. An authorizer that cannot tell is an error.
func Missing(
	ctx context.Context, decides authorizer.Authorizer, who user.Info, permissions []Permission, most int,
) ([]Permission, error) {
	var missing []Permission
	for _, p := range permissions {
		if len(missing) == most {
			break
		}
		verbs, err := missingVerbs(ctx, decides, who, p)
		if err != nil {
			return nil, fmt.Errorf("asking whether %q may %s: %w", who.GetName(), p, err)
		}
		if len(verbs) > 0 {
			p.Verbs = verbs
			missing = append(missing, p)
		}
	}
	return missing, nil
}

// missingVerbs are those of p that a user is not allowed.
func missingVerbs(ctx context.Context, decides authorizer.Authorizer, who user.Info, p Permission) ([]string, error) {
	var missing []string
	for _, verb := range p.Verbs {
		decision, _, err := decides.Authorize(ctx, authorizer.AttributesRecord{
			User:            who,
			Verb:            verb,
			Namespace:       p.Namespace,
			APIGroup:        p.Group,
			APIVersion:      "*",
			Resource:        p.Resource,
			Name:            p.Name,
			ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return nil, err
		}
		missing = append(missing, verb)
	}
	return missing, nil
}
