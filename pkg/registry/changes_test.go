// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
)

// readers allows each user to get the types that the user is named after, joined with "+".
type readers struct{ fails atomic.Bool }

func (r *readers) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case r.fails.Load():
		return authorizer.DecisionNoOpinion, "", errors.New("unreachable")
	case a.GetVerb() == "get" && a.GetNamespace() == namespace && slices.Contains(strings.Split(a.GetUser().GetName(), "+"), a.GetResource()):
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// changeOf returns a Change of an object.
func changeOf(name, apiVersion, resource string) *v1alpha1.Change {
	return &v1alpha1.Change{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ChangeSpec{
			Object:    v1alpha1.ChangedObject{APIVersion: apiVersion, Resource: resource, Namespace: namespace, Name: "web"},
			Operation: v1alpha1.ChangeUpdate,
		},
	}
}

// changesEndpoint is what requests reach.
type changesEndpoint interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// TestChangesAreVisibleToReadersOfTheirObjects reads, watches and deletes as users with different permissions.
func TestChangesAreVisibleToReadersOfTheirObjects(t *testing.T) {
	decides := &readers{}
	storage := newStorage(t, func(c *registry.Config) { c.Authorizer = authorizer.AuthorizerFunc(decides.Authorize) })
	endpoint := storage.Endpoints["changes"].(changesEndpoint)
	watched := map[string]<-chan string{}
	for _, name := range []string{"deployments", "deployments+secrets", "nothing"} {
		events, err := endpoint.Watch(as(t, name), &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer events.Stop()
		names := make(chan string, 10)
		watched[name] = names
		go func() {
			for event := range events.ResultChan() {
				names <- event.Object.(*configbutler.Change).Name
			}
			close(names)
		}()
	}
	for _, change := range []*v1alpha1.Change{
		changeOf("a", "apps/v1", "deployments"), changeOf("b", "v1", "secrets"), changeOf("c", "apps/v1", "deployments"),
	} {
		if _, err := storage.Records.Write(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"deployments": "a c", "deployments+secrets": "a b c", "nothing": "", "": ""} {
		if got := listed(as(t, name), t, endpoint); got != want {
			t.Errorf("%q lists %q, want %q", name, got, want)
		}
		for _, each := range []string{"a", "b", "c"} {
			_, err := endpoint.Get(as(t, name), each, &metav1.GetOptions{})
			if visible := slices.Contains(strings.Fields(want), each); visible != (err == nil) || !visible && !apierrors.IsNotFound(err) {
				t.Errorf("%q gets %s: error %v, want visible %v", name, each, err, visible)
			}
		}
		for _, each := range strings.Fields(want) {
			if got := <-watched[name]; got != each {
				t.Errorf("%q watches %s, want %s", name, got, each)
			}
		}
	}
	decides.fails.Store(true)
	if _, err := endpoint.List(as(t, "deployments"), &internalversion.ListOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("list while permissions cannot be reviewed: error %v", err)
	}
}

// listed returns the names of the Changes that a user lists.
func listed(ctx context.Context, t *testing.T, endpoint rest.Lister) string {
	t.Helper()
	list, err := endpoint.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namesOf(list)
}

func namesOf(list runtime.Object) string {
	var names []string
	for _, item := range list.(*configbutler.ChangeList).Items {
		names = append(names, item.Name)
	}
	return strings.Join(names, " ")
}
