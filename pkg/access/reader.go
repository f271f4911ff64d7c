// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Reader reviews which objects the user of one request may read. It makes each review once, so it must not outlive the request. It is
// not safe for concurrent use.
type Reader struct {
	decides authorizer.Authorizer
	who     user.Info
	decided map[reviewed]bool
}

// reviewed is what a review is about.
type reviewed struct {
	verb string
	schema.GroupResource
	namespace, name string
}

// NewReader returns the Reader of a user. Without an authorizer or a user, nothing may be read.
func NewReader(decides authorizer.Authorizer, who user.Info) *Reader {
	return &Reader{decides: decides, who: who, decided: map[reviewed]bool{}}
}

// User returns the name of the user; empty if the request is not authenticated.
func (r *Reader) User() string {
	if r.who == nil {
		return ""
	}
	return r.who.GetName()
}

// Reviews returns the number of reviews that were made.
func (r *Reader) Reviews() int { return len(r.decided) }

// May reports whether the user may use a verb on the objects of a type in a namespace, or on the one with a name. The namespace is empty
// for a cluster-scoped type, and for the whole cluster.
func (r *Reader) May(ctx context.Context, verb string, of schema.GroupResource, namespace, name string) (bool, error) {
	if r.decides == nil || r.who == nil {
		return false, nil
	}
	key := reviewed{verb, of, namespace, name}
	if allowed, found := r.decided[key]; found {
		return allowed, nil
	}
	decision, _, err := r.decides.Authorize(ctx, authorizer.AttributesRecord{
		User: r.who, Verb: verb, Namespace: namespace, APIGroup: of.Group, APIVersion: "*", Resource: of.Resource, Name: name,
		ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		return false, fmt.Errorf("review whether %q may %s %s: %w", r.who.GetName(), verb, of, err)
	}
	r.decided[key] = decision == authorizer.DecisionAllow
	return r.decided[key], nil
}

// MayList reports whether the user may list the objects of a type in a namespace. If the user may list all of the cluster, further
// namespaces need no review.
func (r *Reader) MayList(ctx context.Context, of schema.GroupResource, namespace string) (bool, error) {
	all, err := r.May(ctx, "list", of, "", "")
	if err != nil || all || namespace == "" {
		return all, err
	}
	return r.May(ctx, "list", of, namespace, "")
}
