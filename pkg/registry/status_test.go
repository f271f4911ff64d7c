// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry"
)

// written are objects of every kind that users write, by the plural.
func written() map[string]runtime.Object {
	rules := []configbutler.ResourceRule{{Name: "a", Resources: []string{"configmaps"}}}
	clusterRules := []configbutler.ClusterResourceRule{{ResourceRule: rules[0], Scope: configbutler.ScopeNamespaced}}
	return map[string]runtime.Object{
		"gitrepoconfigs": &configbutler.GitRepoConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "repo"},
			Spec:       configbutler.GitRepoConfigSpec{RepoURL: "https://git.example.com/shop.git", AllowedBranches: []string{"main"}},
		},
		"gitdestinations": destination(),
		"watchrules": &configbutler.WatchRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rule"},
			Spec:       configbutler.WatchRuleSpec{DestinationRef: configbutler.ObjectReference{Name: "dest"}, Rules: rules},
		},
		"clusterwatchrules": &configbutler.ClusterWatchRule{
			ObjectMeta: metav1.ObjectMeta{Name: "rule"},
			Spec: configbutler.ClusterWatchRuleSpec{
				DestinationRef: configbutler.NamespacedObjectReference{Namespace: namespace, Name: "dest"}, Rules: clusterRules,
			},
		},
		"appcatalogs":  catalog(),
		"environments": environment(),
		"syncpolicies": &configbutler.SyncPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec: configbutler.SyncPolicySpec{
				MaxDismissals: new(int32(1)), BatchWindow: &metav1.Duration{Duration: 30 * time.Second}, MaxSyncsPerMinute: new(int32(60)),
				Retry: configbutler.RetryPolicy{
					MaxAttempts: new(int32(5)), Backoff: &metav1.Duration{Duration: 10 * time.Second}, MaxBackoff: &metav1.Duration{Duration: time.Minute},
				},
				Retention: configbutler.Retention{Days: new(int32(90)), KeepPerSubject: new(int32(10)), MaxPerSubject: new(int32(1000))},
			},
		},
		"syncpipelines":     pipeline(),
		"notificationsinks": notificationSink(),
	}
}

// statusOf is the status of an object of any kind, with the generation that it observes.
func statusOf(obj runtime.Object) (status reflect.Value, observed int64) {
	status = reflect.ValueOf(obj).Elem().FieldByName("Status")
	return status, status.FieldByName("ObservedGeneration").Int()
}

// forge writes something to the status of an object.
func forge(obj runtime.Object) runtime.Object {
	forged := obj.DeepCopyObject()
	status, _ := statusOf(forged)
	status.FieldByName("ObservedGeneration").SetInt(77)
	conditions := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(noon)}}
	status.FieldByName("Conditions").Set(reflect.ValueOf(conditions))
	return forged
}

// TestOnlyTheServerWritesStatus tries every way to the status of every kind, as users of all rights and as the server.
func TestOnlyTheServerWritesStatus(t *testing.T) {
	storage := newStorage(t)
	users := map[string]user.Info{
		"a user":            &user.DefaultInfo{Name: "mallory", Groups: []string{user.AllAuthenticated}},
		"a cluster's admin": &user.DefaultInfo{Name: "admin", Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup}},
		"the server's name": &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.AllAuthenticated}},
		"an account of the like": &user.DefaultInfo{
			Name: "system:serviceaccount:slipstream-system:slipstream-server", Groups: []string{user.AllAuthenticated},
		},
		"anonymous": &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}},
		"no user":   nil,
	}
	kinds := written()
	for endpoint := range storage.Endpoints {
		if plural, found := strings.CutSuffix(endpoint, "/status"); found && kinds[plural] == nil {
			t.Errorf("%s is not tried", endpoint)
		}
	}
	for plural, obj := range kinds {
		t.Run(plural, func(t *testing.T) {
			scope := obj.(metav1.Object).GetNamespace()
			within := func(info user.Info) context.Context {
				ctx := genericapirequest.WithNamespace(t.Context(), scope)
				if info == nil {
					return ctx
				}
				return genericapirequest.WithUser(ctx, info)
			}
			created := try{t, storage, within(users["a user"])}.create(plural, forge(obj))
			if _, observed := statusOf(created); observed != 0 {
				t.Errorf("created with a status that observes generation %d", observed)
			}
			for who, info := range users {
				attempt := try{t, storage, within(info)}
				for _, forceCreate := range []bool{false, true} {
					_, err := attempt.update(plural+"/status", forge(created), forceCreate)
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a status is written by the server only") {
						t.Errorf("%s writes the status (apply %v): %v", who, forceCreate, err)
					}
				}
			}
			attempt := try{t, storage, within(users["a user"])}
			updated, err := attempt.update(plural, forge(created), false)
			if err != nil {
				t.Fatal(err)
			}
			if _, observed := statusOf(updated); observed != 0 {
				t.Errorf("the main endpoint has written a status that observes generation %d", observed)
			}
			shown, err := storage.Endpoints[plural+"/status"].(rest.Getter).Get(attempt.ctx, created.(metav1.Object).GetName(), &metav1.GetOptions{})
			if err != nil || shown.(metav1.Object).GetUID() != created.(metav1.Object).GetUID() {
				t.Errorf("the status cannot be read: %v", err)
			}
			updated, err = try{t, storage, asServer(within(nil))}.update(plural+"/status", forge(updated), false)
			if err != nil {
				t.Fatalf("the server writes the status: %v", err)
			}
			if _, observed := statusOf(updated); observed != 77 {
				t.Errorf("after the server has written it, the status observes generation %d, want 77", observed)
			}
		})
	}
}

// try sends requests as a user.
type try struct {
	t       *testing.T
	storage *registry.Storage
	ctx     context.Context //nolint:containedctx // it says who sends them
}

func (a try) create(endpoint string, obj runtime.Object) runtime.Object {
	a.t.Helper()
	created, err := a.storage.Endpoints[endpoint].(creator).Create(a.ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return created
}

func (a try) update(endpoint string, obj runtime.Object, forceCreate bool) (runtime.Object, error) {
	updated, _, err := a.storage.Endpoints[endpoint].(rest.Updater).Update(a.ctx, obj.(metav1.Object).GetName(),
		rest.DefaultUpdatedObjectInfo(obj),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, forceCreate, &metav1.UpdateOptions{})
	return updated, err
}
