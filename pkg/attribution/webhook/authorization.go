// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// authorizer decides on requests to the paths of the endpoints and delegates all others to the server's own authorizer.
// Its decision is final: even system:masters may not post admission reviews. For /audit, the delegate checks with the
// cluster whether the user of the certificate may post.
func (e *Endpoints) authorizer(delegate authorizer.Authorizer) (authorizer.Authorizer, error) {
	ours := authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		switch {
		case a.IsResourceRequest() && a.GetAPIGroup() == v1alpha1.GroupName && a.GetResource() == admissionResource:
			return decide(admissionEndpoint, attribution.IsAPIServer(a.GetUser()), "only kube-apiserver itself may ask for the review of a request")
		case a.IsResourceRequest():
		case e.isWebhook(a.GetPath()):
			return decide(webhookEndpoint, a.GetUser() != nil && a.GetUser().GetName() == webhookUser, "the secret of the path is needed")
		case e.isAudit(a.GetPath()):
			decision, reason, err := delegate.Authorize(ctx, a)
			if err != nil {
				return authorizer.DecisionDeny, reason, err
			}
			return decide(auditEndpoint, decision == authorizer.DecisionAllow, reason)
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "attribution", Authorizer: ours},
		union.NamedAuthorizer{AuthorizerName: "delegated", Authorizer: delegate},
	)
}

// decide returns a final decision and counts refused requests.
func decide(endpoint string, allow bool, reason string) (authorizer.Decision, string, error) {
	if allow {
		return authorizer.DecisionAllow, reason, nil
	}
	refusals.WithLabelValues(endpoint, unauthorized).Inc()
	return authorizer.DecisionDeny, reason, nil
}
