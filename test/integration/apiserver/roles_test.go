// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/testkit"
)

// Verbs by which the roles differ.
var (
	reading  = []string{"get", "list", "watch"}
	getting  = []string{"get"}
	creating = []string{"create"}
	deleting = []string{"delete", "deletecollection"}
	writing  = slices.Concat(creating, []string{"update", "patch"}, deleting)
)

// rights are the verbs of a role besides reading, by resource.
type rights map[string][]string

// documented returns the roles in the whole cluster. None of them includes writing a status or a record.
func documented() map[string]rights {
	view := rights{"environments/diff": getting, "changes/diff": getting, "gitdestinations/objects": getting}
	edit := maps.Clone(view)
	maps.Copy(edit, rights{
		"gitdestinations": writing, "watchrules": writing, "appcatalogs": writing, "environments": writing,
		"gitdestinations/sync": creating, "appcatalogs/sync": creating, "appcatalogs/rollback": creating,
		"environments/sync": creating, "environments/dismiss": creating, "environments/undismiss": creating,
		"environments/resolve": creating, "environments/rollback": creating, "environments/rediscover": creating,
		"syncstatuses/dismiss": creating, "syncstatuses/retry": creating, "syncpipelines/sync": creating,
		"notificationsinks/test": creating,
	})
	admin := maps.Clone(edit)
	maps.Copy(admin, rights{
		"gitrepoconfigs": writing, "clusterwatchrules": writing, "syncpolicies": writing, "syncpipelines": writing,
		"notificationsinks":      writing,
		"gitdestinationstatuses": deleting, "catalogworkloads": deleting, "environmentdependencies": deleting, "syncstatuses": deleting,
		"environments/secretdiff": getting,
	})
	return map[string]rights{"slipstream-view": view, "slipstream-support": view, "slipstream-edit": edit, "slipstream-admin": admin}
}

func testRoles(t *testing.T, s *testCluster) {
	a := s.newReviewer(t)
	for role, more := range documented() {
		s.bind(t, a, role)
		for _, resource := range a.resources {
			want := slices.Clone(more[resource])
			if !strings.Contains(resource, "/") {
				want = append(want, reading...)
			}
			a.expect(t, role, resource, want)
		}
	}
	for role, resource := range map[string]string{"view": "syncstatuses", "edit": "appcatalogs", "admin": "gitrepoconfigs"} {
		s.bind(t, a, role)
		a.expect(t, role, resource, slices.Concat(reading, documented()["slipstream-"+role][resource]))
	}
}

// bind binds a role to a user with its name in the whole cluster, and waits until the binding is effective.
func (s *testCluster) bind(t *testing.T, a *reviewer, role string) {
	t.Helper()
	s.kubectl(t, "create", "clusterrolebinding", "test-"+role, "--clusterrole="+role, "--user="+role)
	testkit.EventuallyWithin(t, deadline, "the binding of "+role, func(ctx context.Context) error {
		allowed, err := a.allowed(ctx, role, "list", "syncstatuses")
		if err == nil && !allowed {
			err = errors.New("not yet")
		}
		return err
	})
}

// reviewer creates access reviews for users.
type reviewer struct {
	client kubernetes.Interface
	// resources are the served resources, including subresources.
	resources []string
}

func (s *testCluster) newReviewer(t *testing.T) *reviewer {
	t.Helper()
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no client-side limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.Discovery().ServerResourcesForGroupVersion("configbutler.ai/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	a := &reviewer{client: client}
	for _, each := range served.APIResources {
		a.resources = append(a.resources, each.Name)
	}
	return a
}

// expect compares the allowed verbs of a user who is bound to a role.
func (a *reviewer) expect(t *testing.T, role, resource string, want []string) {
	t.Helper()
	for _, verb := range slices.Concat(reading, writing) {
		allowed, err := a.allowed(t.Context(), role, verb, resource)
		if err != nil {
			t.Fatal(err)
		}
		if allowed != slices.Contains(want, verb) {
			t.Errorf("%s can %s %s: %v", role, verb, resource, allowed)
		}
	}
}

func (a *reviewer) allowed(ctx context.Context, user, verb, resource string) (bool, error) {
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "configbutler.ai", Version: "v1alpha1", Resource: resource, Subresource: subresource, Verb: verb, Namespace: "default",
		},
	}}
	reviewed, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return reviewed.Status.Allowed, nil
}
