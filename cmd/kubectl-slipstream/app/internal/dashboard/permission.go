// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// parallelReviews is the number of reviews at the same time.
	parallelReviews = 8
	// reviewLife is how long the result of a review is used, and maxReviews the number of results that are kept.
	reviewLife, maxReviews = 30 * time.Second, 1000
)

// reviews are what the user may do, as the API server said it.
type reviews struct {
	client authorization.SelfSubjectAccessReviewInterface
	now    func() time.Time

	mu    sync.Mutex
	known map[authorizationv1.ResourceAttributes]review
}

// review is the result of a review.
type review struct {
	allowed bool
	until   time.Time
}

// missing returns for each list of permissions which one the user lacks, as a sentence. It is empty if the user has them all.
func (r *reviews) missing(ctx context.Context, needed [][]authorizationv1.ResourceAttributes) ([]string, error) {
	missing := make([]string, len(needed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, permissions := range needed {
		group.Go(func() error {
			for _, attributes := range permissions {
				allowed, err := r.allowed(ctx, attributes)
				if err != nil {
					return err
				}
				if !allowed {
					missing[i] = lacks(attributes)
					return nil
				}
			}
			return nil
		})
	}
	return missing, group.Wait()
}

// permission is a verb on a resource of configbutler.ai.
type permission struct{ verb, resource, subresource string }

// attributes returns the permission for an object. One for another resource is for all objects of the namespace.
func (p permission) attributes(of target) authorizationv1.ResourceAttributes {
	attributes := authorizationv1.ResourceAttributes{
		Verb: p.verb, Group: v1alpha1.GroupName, Resource: p.resource, Subresource: p.subresource, Namespace: of.Namespace,
	}
	if p.resource == of.Resource {
		attributes.Name = of.Name
	}
	return attributes
}

// allowed reports whether the user may do something.
func (r *reviews) allowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	r.mu.Lock()
	known, found := r.known[attributes]
	r.mu.Unlock()
	if found && r.now().Before(known.until) {
		return known.allowed, nil
	}
	answer, err := r.client.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxReviews {
		r.known = map[authorizationv1.ResourceAttributes]review{}
	}
	r.known[attributes] = review{answer.Status.Allowed, r.now().Add(reviewLife)}
	return answer.Status.Allowed, nil
}

// lacks returns the sentence about a permission that the user lacks.
func lacks(of authorizationv1.ResourceAttributes) string {
	resource := of.Resource
	if of.Subresource != "" {
		resource += "/" + of.Subresource
	}
	where := "in the whole cluster"
	if of.Namespace != "" {
		where = "in the namespace " + of.Namespace
	}
	text := fmt.Sprintf("You lack the permission to %s %s %s.", of.Verb, resource, where)
	if role := cli.RoleWith(of.Verb, resource); role != "" && of.Group == v1alpha1.GroupName {
		text += fmt.Sprintf(" The ClusterRole %s has it.", role)
	}
	return text
}

// written returns the permissions that an action of a Change needs for its object.
func written(a action, change map[string]any) []authorizationv1.ResourceAttributes {
	if !a.writes {
		return nil
	}
	object, _, err := unstructured.NestedStringMap(change, "spec", "object")
	if err != nil {
		return nil // The command finds out.
	}
	version, err := schema.ParseGroupVersion(object["apiVersion"])
	if err != nil {
		return nil // As above.
	}
	verb := "update"
	switch operation, _, _ := unstructured.NestedString(change, "spec", "operation"); v1alpha1.ChangeOperation(operation) {
	case v1alpha1.ChangeCreate:
		if a.name == "undo" {
			verb = "delete"
		}
	case v1alpha1.ChangeDelete:
		verb = "create"
	}
	needed := authorizationv1.ResourceAttributes{
		Verb: "get", Group: version.Group, Resource: object["resource"], Namespace: object["namespace"], Name: object["name"],
	}
	other := needed
	if other.Verb = verb; verb == "create" {
		other.Name = "" // The name of a new object is not known to an authorizer.
	}
	return []authorizationv1.ResourceAttributes{needed, other}
}
