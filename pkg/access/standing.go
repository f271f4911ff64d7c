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
	// GrantKept is how long a permission that somebody has is not asked about again: a loss shows after that at the latest.
	GrantKept = 5 * time.Minute
	// LossKept is the same for a permission that somebody does not have. It is short, so that work goes on soon after it has
	// been granted.
	LossKept = 30 * time.Second
	// answersKept bounds the memory. An environment takes about forty answers.
	answersKept = 20_000
	// reviewTimeout is how long the API server has to answer.
	reviewTimeout = 10 * time.Second
	// mostLost keeps a sentence readable.
	mostLost = 3
)

// Standing tells whether those still have their permissions for whom work goes on while they are not there. It asks the cluster,
// and keeps the answers for a while.
type Standing struct {
	reviews reviews
}

// Connect asks the API server that config leads to, whose fairness is all that limits the questions.
func Connect(config *rest.Config, clock clock.PassiveClock) (*Standing, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "standing-rights")
	config.QPS = -1
	client, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for SubjectAccessReviews: %w", err)
	}
	return NewStanding(client.SubjectAccessReviews(), clock), nil
}

// NewStanding asks with a client that may create SubjectAccessReviews.
func NewStanding(client authorizationclient.SubjectAccessReviewInterface, clock clock.PassiveClock) *Standing {
	return &Standing{reviews{client: client, known: cache.NewLRUExpireCacheWithClock(answersKept, clock)}}
}

// Check says in a sentence what of permissions who does not have, and what to do about it; it is empty when nothing is missing.
// An API server that cannot tell is an error: then nothing is known to be lost, and nothing to be there.
func (s *Standing) Check(ctx context.Context, who Holder, permissions []Permission) (lost string, err error) {
	if unknown := who.Unknown(); unknown != "" {
		return unknown, nil
	}
	missing, err := Missing(ctx, authorizer.AuthorizerFunc(s.reviews.authorize), &who.user, permissions, mostLost)
	if err != nil || len(missing) == 0 {
		return "", err
	}
	texts := make([]string, len(missing))
	for i, p := range missing {
		texts[i] = p.String()
	}
	return fmt.Sprintf("%s may not %s: %s", who, strings.Join(texts, ", nor "), who.takenOver), nil
}

// reviews is an authorizer that keeps what it has been answered. Those of k8s.io/apiserver hold a review that failed to be a
// denial.
type reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
	known  *cache.LRUExpireCache
}

// question is what an answer is kept for.
type question struct {
	who                                      fingerprint
	verb, namespace, group, resource, object string
}

// authorize answers from what is known, or asks.
func (r *reviews) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key := question{fingerprintOf(a.GetUser()), a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetResource(), a.GetName()}
	decision, isKnown := r.decision(key)
	if isKnown {
		return decision, "", nil
	}
	allowed, err := r.review(ctx, a)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if allowed {
		r.known.Add(key, authorizer.DecisionAllow, GrantKept)
		return authorizer.DecisionAllow, "", nil
	}
	r.known.Add(key, authorizer.DecisionNoOpinion, LossKept)
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *reviews) decision(of question) (decision authorizer.Decision, isKnown bool) {
	if kept, ok := r.known.Get(of); ok {
		decision, isKnown = kept.(authorizer.Decision)
	}
	return decision, isKnown
}

// review asks the API server.
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
