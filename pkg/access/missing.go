// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Missing returns what of permissions a user does not have, and the first of it when there is more than most. What is missing of
// a permission is told by verbs. An authorizer that cannot tell is an error.
func Missing(
	ctx context.Context, decides authorizer.Authorizer, who user.Info, permissions []Permission, most int,
) ([]Permission, error) {
	var missing []Permission
	for _, p := range permissions {
		lacks, err := missingOf(ctx, decides, who, p)
		if err != nil {
			return nil, fmt.Errorf("asking whether %q may %s: %w", who.GetName(), p, err)
		}
		if missing = append(missing, lacks...); len(missing) >= most {
			return missing[:most], nil
		}
	}
	return missing, nil
}

// missingOf is what a user lacks of p, with the types together of which the same verbs are missing.
func missingOf(ctx context.Context, decides authorizer.Authorizer, who user.Info, p Permission) ([]Permission, error) {
	var missing []Permission
	for _, resource := range p.Resources {
		verbs, err := missingVerbs(ctx, decides, who, p, resource)
		if err != nil {
			return nil, err
		}
		if len(verbs) == 0 {
			continue
		}
		same := slices.IndexFunc(missing, func(m Permission) bool { return slices.Equal(m.Verbs, verbs) })
		if same >= 0 {
			missing[same].Resources = append(missing[same].Resources, resource)
			continue
		}
		lack := p
		lack.Verbs, lack.Resources = verbs, []string{resource}
		missing = append(missing, lack)
	}
	return missing, nil
}

// missingVerbs are those of p that a user is not allowed on a type.
func missingVerbs(
	ctx context.Context, decides authorizer.Authorizer, who user.Info, p Permission, resource string,
) ([]string, error) {
	var missing []string
	for _, verb := range p.Verbs {
		decision, _, err := decides.Authorize(ctx, authorizer.AttributesRecord{
			User:            who,
			Verb:            verb,
			Namespace:       p.Namespace,
			APIGroup:        p.Group,
			APIVersion:      "*",
			Resource:        resource,
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
