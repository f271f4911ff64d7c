// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// right is something that a user may do.
type right struct {
	// words describe it after "you may".
	words, verb, resource, subresource string
	clusterScoped                      bool
}

func rights() []right {
	return []right{
		{words: "read the history", verb: "list", resource: "changes"},
		{words: "read earlier states", verb: "get", resource: "gitdestinations", subresource: "objects"},
		{words: "mirror", verb: "create", resource: "gitdestinations"},
		{words: "create catalogs", verb: "create", resource: "appcatalogs"},
		{words: "create environments", verb: "create", resource: "environments"},
		{words: "sync environments", verb: "create", resource: "environments", subresource: "sync"},
		{words: "create pipelines", verb: "create", resource: "syncpipelines", clusterScoped: true},
	}
}

// checkRights checks what the user may do in the namespace.
func (c *check) checkRights(ctx context.Context) bool {
	const about = "rights"
	config, err := c.config.ToRESTConfig()
	if err != nil {
		c.warn(about, oneLine(err), "")
		return true
	}
	client, err := authorization.NewForConfig(config)
	if err != nil {
		c.warn(about, oneLine(err), "")
		return true
	}
	var may, mayNot []string
	for _, each := range rights() {
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, each.review(c.namespace), metav1.CreateOptions{})
		switch {
		case err != nil:
			c.warn(about, oneLine(err), "")
			return true
		case answer.Status.Allowed:
			may = append(may, each.words)
		default:
			mayNot = append(mayNot, each.words)
		}
	}
	in, next := "in namespace "+c.namespace+" you may ", "ask for the role slipstream-view or slipstream-edit there: "+cli.Docs+"permissions.md"
	switch {
	case len(may) == 0:
		c.warn(about, in+"do nothing with these kinds", next)
	case len(mayNot) == 0:
		c.ok(about, "%s%s", in, strings.Join(may, ", "))
	default:
		c.ok(about, "%s%s; not: %s", in, strings.Join(may, ", "), strings.Join(mayNot, ", "))
	}
	return true
}

// review returns the question whether the user has a right.
func (r right) review(namespace string) *authorizationv1.SelfSubjectAccessReview {
	if r.clusterScoped {
		namespace = ""
	}
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: v1alpha1.GroupName, Version: v1alpha1.SchemeGroupVersion.Version,
			Resource: r.resource, Subresource: r.subresource,
		},
	}}
}
