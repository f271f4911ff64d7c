// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// AllowedTTL is how long a permission that was granted is cached: a revocation takes effect after that time at the latest.
	AllowedTTL = 5 * time.Minute
	// DeniedTTL is how long a permission that was denied is cached. It is short, so that work continues soon after a grant.
	DeniedTTL = 30 * time.Second
	// cacheSize is how many decisions are cached. An environment needs about forty.
	cacheSize = 20_000
	// reviewTimeout bounds one SubjectAccessReview.
	reviewTimeout = 10 * time.Second
	// maxListed is how many missing permissions a message lists.
	maxListed = 3
)

// Reviewer checks whether the users on whose behalf the controllers work still have their permissions.
type Reviewer interface {
	// Check returns a sentence that names the permissions that who lacks and what to do about it, or an empty string if none is
	// missing. An error means that this is not known: the permissions are neither granted nor denied.
	Check(ctx context.Context, who Holder, permissions []Permission) (lost string, err error)
	// CheckNow is Check without cached decisions, for work that cannot be taken back.
	CheckNow(ctx context.Context, who Holder, permissions []Permission) (lost string, err error)
}

// Reviews is a Reviewer that creates SubjectAccessReviews and caches the decisions.
type Reviews struct {
	reviews reviews
}

var _ Reviewer = &Reviews{}

// NewReviewsForConfig returns Reviews by the API server of config. Only the API server's priority and fairness limits their rate.
func NewReviewsForConfig(config *rest.Config, clock clock.PassiveClock) (*Reviews, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "access-reviews")
	config.QPS = -1
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for SubjectAccessReviews: %w", err)
	}
	return NewReviews(client.SubjectAccessReviews(), clock), nil
}

// NewReviews returns Reviews by a client that is allowed to create SubjectAccessReviews.
func NewReviews(client authorizationclient.SubjectAccessReviewInterface, clock clock.PassiveClock) *Reviews {
	return &Reviews{reviews{client: client, cached: cache.NewLRUExpireCacheWithClock(cacheSize, clock)}}
}

// Check implements Reviewer.
func (s *Reviews) Check(ctx context.Context, who Holder, permissions []Permission) (lost string, err error) {
	return check(ctx, s.reviews.authorize, who, permissions)
}

// CheckNow implements Reviewer.
func (s *Reviews) CheckNow(ctx context.Context, who Holder, permissions []Permission) (lost string, err error) {
	return check(ctx, s.reviews.authorizeNow, who, permissions)
}

func check(ctx context.Context, decides authorizer.AuthorizerFunc, who Holder, permissions []Permission) (lost string, err error) {
	if unknown := who.Unknown(); unknown != "" {
		return unknown, nil
	}
	missing, err := Missing(ctx, decides, &who.user, permissions, maxListed)
	if err != nil || len(missing) == 0 {
		return "", err
	}
	texts := make([]string, len(missing))
	for i, p := range missing {
		texts[i] = p.String()
	}
	return fmt.Sprintf("%s may not %s: %s", who, strings.Join(texts, ", nor "), who.remedy), nil
}

// reviews is an authorizer that caches decisions. Those of k8s.io/apiserver treat a review that failed as a denial.
type reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
	cached *cache.LRUExpireCache
}

// cacheKey identifies a decision.
type cacheKey struct {
	who                                      fingerprint
	verb, namespace, group, resource, object string
}

func cacheKeyOf(a authorizer.Attributes) cacheKey {
	return cacheKey{fingerprintOf(a.GetUser()), a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetResource(), a.GetName()}
}

// authorize returns the cached decision, or creates a review.
func (r *reviews) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if decision, isKnown := r.decision(cacheKeyOf(a)); isKnown {
		return decision, "", nil
	}
	return r.authorizeNow(ctx, a)
}

// authorizeNow creates a review, and caches the decision.
func (r *reviews) authorizeNow(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key := cacheKeyOf(a)
	allowed, err := r.review(ctx, a)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if allowed {
		r.cached.Add(key, authorizer.DecisionAllow, AllowedTTL)
		return authorizer.DecisionAllow, "", nil
	}
	r.cached.Add(key, authorizer.DecisionNoOpinion, DeniedTTL)
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *reviews) decision(key cacheKey) (decision authorizer.Decision, isKnown bool) {
	if cached, ok := r.cached.Get(key); ok {
		decision, isKnown = cached.(authorizer.Decision)
	}
	return decision, isKnown
}

// review creates a SubjectAccessReview.
func (r *reviews) review(ctx context.Context, a authorizer.Attributes) (allowed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	who := a.GetUser()
	answer, err := r.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.GetVerb(), Namespace: a.GetNamespace(), Name: a.GetName(),
			Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	if failure := answer.Status.EvaluationError; failure != "" && !answer.Status.Allowed {
		return false, fmt.Errorf("the API server cannot tell: %s", failure)
	}
	return answer.Status.Allowed, nil
}
