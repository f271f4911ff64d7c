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

// Missing returns the permissions that a user lacks, at most a given number of them. Of a permission that the user has in part, it returns
// the missing verbs. It returns an error if the authorizer fails.
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

// missingOf returns what a user lacks of p. Resources that lack the same verbs share a Permission.
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

// missingVerbs returns the verbs of p that the user lacks on a resource.
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
