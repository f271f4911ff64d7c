// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/registrytest"
)

// endpoint is what requests for Changes reach.
type endpoint interface {
	rest.Lister
	rest.Getter
	rest.Watcher
}

// served is a history whose Changes are served by upstream's storage.
type served struct {
	*fixture
	*history.History
	endpoint endpoint
	stored   *table.Table
	// read counts the rows that are read of the tables.
	read *counter
	// review is called with the resource of each review of a permission. It returns whether it is allowed.
	review func(resource string) bool
}

func newServed(t testing.TB) *served {
	t.Helper()
	s := &served{fixture: &fixture{TB: t, clock: testkit.NewClock(t)}, read: &counter{}, review: func(string) bool { return true }}
	transformers := history.Transformers(registrytest.Plain{})
	storage := registrytest.NewStorage(t, transformers, func(config *registry.Config, kv clientv3.KV) {
		s.read.KV = kv
		s.kv, kv = kv, s.read
		rows := table.New(kv, "/test-work").Table(history.TableName)
		s.stored = table.New(kv, registrytest.Prefix+"/configbutler.ai",
			table.WithTransformer(transformers.TransformerForResource(history.Resource))).Table("changes")
		s.History = history.New(history.Config{Changes: s.stored, Rows: rows, Namespace: "system", Clock: s.clock})
		config.RESTOptions = history.NewRESTOptionsGetter(config.RESTOptions, s.stored, rows)
		config.Clock = s.clock
		config.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
			if s.review(of.GetResource()) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})
	})
	s.endpoint = storage.Endpoints["changes"].(endpoint)
	return s
}

// in returns the context of a request for a namespace.
func (s *served) in(namespace string) context.Context {
	return genericapirequest.WithUser(genericapirequest.WithNamespace(s.Context(), namespace), &user.DefaultInfo{Name: "jane"})
}

// list returns the commits of the selected Changes, page by page.
func (s *served) list(namespace, selector string, limit int64) string {
	s.Helper()
	var commits []string
	options := &internalversion.ListOptions{Limit: limit, FieldSelector: fields.ParseSelectorOrDie(selector)}
	for {
		obj, err := s.endpoint.List(s.in(namespace), options)
		s.must(err)
		list := obj.(*configbutler.ChangeList)
		if limit > 0 && len(list.Items) > int(limit) || list.ResourceVersion == "" {
			s.Errorf("a page of %d with resourceVersion %q, want at most %d", len(list.Items), list.ResourceVersion, limit)
		}
		for _, item := range list.Items {
			commits = append(commits, item.Spec.Commits[0].SHA)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return strings.Join(commits, " ")
		}
	}
}

// TestListsBySelector lists with each selector, with and without an index, in one namespace and in all.
func TestListsBySelector(t *testing.T) {
	s := newServed(t)
	for i := range 6 {
		s.clock.Step(time.Second)
		change := s.change(named([]string{"shop", "bank"}[i%2], []string{"web", "api", "db"}[i%3]), fmt.Sprintf("%d%039d", i, 0), "1")
		if i >= 3 {
			change.Author.Username, change.Operation = "system:serviceaccount:ops:deployer/a%", v1alpha1.ChangeDelete
			change.Bypass = i < 5
		}
		s.record(s.History, fmt.Sprint(i), change)
	}
	for _, test := range []struct{ namespace, selector, want string }{
		{"", "", "5 4 3 2 1 0"},
		{"shop", "", "4 2 0"},
		{"shop", "author=jane@example.com", "2 0"},
		{"", "author=system:serviceaccount:ops:deployer/a%", "5 4 3"},
		{"", "author=jane@example.co", ""},
		{"", "object.name=web", "3 0"},
		{"bank", "object.name=web", "3"},
		{"", "object.name=web,operation=Delete", "3"},
		{"", "object.name=web,author=jane@example.com", "0"},
		{"", "object.name!=web,operation=Update", "2 1"},
		{"shop", "object.resource=deployments,object.kind=Deployment", "4 2 0"},
		{"", "object.kind=Service", ""},
		{"", "commit=4" + strings.Repeat("0", 39), "4"},
		{"", "commit=4000000", "4"},
		{"", "commit=400", ""},
		{"", "bypass=true", "4 3"},
		{"", "bypass=true,operation=Update", ""},
		{"bank", "bypass=false", "5 1"},
		{"", "commit=", ""},
		{"bank", "commit=4000000", ""},
		{"", "commit=6", ""},
		{"", "metadata.namespace=bank", "5 3 1"},
		{"bank", "metadata.namespace!=shop", "5 3 1"},
	} {
		for _, limit := range []int64{0, 1, 2} {
			got := strings.ReplaceAll(s.list(test.namespace, test.selector, limit), strings.Repeat("0", 39), "")
			if got != test.want {
				t.Errorf("%q in %q with limit %d: %q, want %q", test.selector, test.namespace, limit, got, test.want)
			}
		}
	}
	_, err := s.endpoint.List(s.in("shop"), &internalversion.ListOptions{
		FieldSelector: fields.ParseSelectorOrDie("author=jane@example.com"), Continue: "nonsense",
	})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("invalid token: error %v, want BadRequest", err)
	}
}

// TestDeletedChangesAreNotListed deletes a Change: its index rows remain.
func TestDeletedChangesAreNotListed(t *testing.T) {
	s := newServed(t)
	web := named("shop", "web")
	for i := range 3 {
		s.clock.Step(time.Second)
		s.record(s.History, fmt.Sprint(i), s.change(web, fmt.Sprint(i), "1"))
	}
	obj, err := s.endpoint.List(s.in("shop"), &internalversion.ListOptions{})
	s.must(err)
	middle := obj.(*configbutler.ChangeList).Items[1]
	if middle.UID == "" || middle.CreationTimestamp.IsZero() {
		t.Errorf("metadata = %+v", middle.ObjectMeta)
	}
	s.must(s.stored.Delete(t.Context(), "shop/"+middle.Name))
	if got := s.list("shop", "object.name=web", 0); got != "2 0" {
		t.Errorf("listed %q, want the first and the last", got)
	}
	s.knows(s.History, web, "0", "2")
}
