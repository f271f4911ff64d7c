// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/registrytest"
)

const namespace = "shop"

// noon is the present of these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// newStorage opens all kinds in a new bbolt file, without watch caches, which take a moment to fill.
func newStorage(t *testing.T, change ...func(*registry.Config)) *registry.Storage {
	t.Helper()
	return registrytest.NewStorage(t, nil, func(config *registry.Config, _ clientv3.KV) {
		config.Clock, config.WaitTimeout = testingclock.NewFakePassiveClock(noon), testkit.Timeout
		for _, each := range change {
			each(config)
		}
	})
}

// in is a request for the namespace of these tests.
func in(t *testing.T) context.Context {
	t.Helper()
	return genericapirequest.WithNamespace(t.Context(), namespace)
}

func destination() *configbutler.GitDestination {
	return &configbutler.GitDestination{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dest"},
		Spec: configbutler.GitDestinationSpec{
			RepoRef: configbutler.ObjectReference{Name: "repo"}, Branch: "main", BaseFolder: "clusters/one",
			AccessPolicy: &configbutler.AccessPolicy{NamespacedRules: configbutler.NamespacedRules{Mode: configbutler.AccessModeSameNamespace}},
			Granularity:  configbutler.GranularityPerAuthor, Secrets: configbutler.SecretsOmit, Prune: configbutler.PruneAlways,
		},
		Status: configbutler.GitDestinationState{ObservedGeneration: 9},
	}
}

// toward is the context of a request for an endpoint. The status is reached as the server, unless the context has a user.
func toward(ctx context.Context, endpoint string) context.Context {
	if _, found := genericapirequest.UserFrom(ctx); found || !strings.HasSuffix(endpoint, "/status") {
		return ctx
	}
	return asServer(ctx)
}

// asServer is a request that the server sends to itself.
func asServer(ctx context.Context) context.Context {
	return genericapirequest.WithUser(ctx, &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	})
}

// creator offers the verb create.
type creator = rest.Creater //nolint:misspell // The word is upstream's.

func create(t *testing.T, storage *registry.Storage, resource string, obj runtime.Object) runtime.Object {
	t.Helper()
	created, err := storage.Endpoints[resource].(creator).Create(in(t), obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// update sends obj to an endpoint.
func update(
	t *testing.T, storage *registry.Storage, endpoint string, obj *configbutler.GitDestination,
) (*configbutler.GitDestination, error) {
	t.Helper()
	updated, _, err := storage.Endpoints[endpoint].(rest.Updater).Update(toward(in(t), endpoint), obj.Name, rest.DefaultUpdatedObjectInfo(obj),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return updated.(*configbutler.GitDestination), nil
}
