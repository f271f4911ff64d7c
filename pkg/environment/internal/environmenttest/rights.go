// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environmenttest

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Rights is an access.Reviewer that grants all permissions except those that were lost. An unknown holder has none. Methods can be called
// concurrently.
type Rights struct {
	mu      sync.Mutex
	lost    sets.Set[string]
	failure error
}

// Lose takes these permissions from users, and no others: all users "get secrets production", or one `user "eve": get secrets production`.
func (r *Rights) Lose(rights ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.failure = sets.New(rights...), nil
}

// Fail has reviews return an error.
func (r *Rights) Fail(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = why
}

// CheckNow is Check.
func (r *Rights) CheckNow(ctx context.Context, who access.Holder, permissions []access.Permission) (string, error) {
	return r.Check(ctx, who, permissions)
}

// Check returns what is lost.
func (r *Rights) Check(_ context.Context, who access.Holder, permissions []access.Permission) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if unknown := who.Unknown(); unknown != "" {
		return unknown, nil
	}
	for _, p := range permissions {
		for _, verb := range p.Verbs {
			for _, resource := range p.Resources {
				right := fmt.Sprintf("%s %s %s", verb, resource, p.Namespace)
				if r.lost.HasAny(right, fmt.Sprintf("%s: %s", who, right)) {
					return fmt.Sprintf("%s may not %s: grant that again", who, p), r.failure
				}
			}
		}
	}
	return "", r.failure
}

// Share has a catalog share Secrets with the permissions of eve.
func Share(catalog *v1alpha1.AppCatalog) {
	catalog.Spec.Secrets = v1alpha1.CatalogSecretsShared
	catalog.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "eve"}
}
