// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("watch ended")
		}
		return event
	case <-time.After(deadline):
		t.Fatal("watch sent no event")
	}
	return watch.Event{}
}

func testPages(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "pages")
	for i := range 5 {
		s.Apply(t, strings.Replace(ruleIn(namespace), "name: rule", fmt.Sprintf("name: rule-%d", i), 1))
	}
	rules := s.client.Resource(resource("watchrules")).Namespace(namespace)
	var names []string
	options := metav1.ListOptions{Limit: 2}
	for {
		page, err := rules.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names = append(names, item.GetName())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
		if remaining := page.GetRemainingItemCount(); remaining == nil || *remaining != int64(5-len(names)) {
			t.Errorf("remaining after %d = %v", len(names), remaining)
		}
	}
	if got := strings.Join(names, " "); got != "rule-0 rule-1 rule-2 rule-3 rule-4" {
		t.Errorf("names in all pages = %s", got)
	}
}

func testInitialEvents(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "initial")
	s.Apply(t, repositoryIn(namespace))
	for _, plural := range []string{"gitrepoconfigs", "gitdestinations", "gitdestinationstatuses", "watchrules", "clusterwatchrules"} {
		t.Run(plural, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			w, err := s.client.Resource(resource(plural)).Watch(ctx, metav1.ListOptions{
				SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			for {
				event := next(t, w)
				obj := event.Object.(*unstructured.Unstructured)
				if event.Type == watch.Bookmark {
					if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
						t.Errorf("first bookmark does not end the initial events: %v", obj)
					}
					return
				}
				if event.Type != watch.Added {
					t.Fatalf("initial event of type %s", event.Type)
				}
			}
		})
	}
}

func testSelectors(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "selectors")
	s.Apply(t, ruleIn(namespace))
	s.Apply(t, strings.Replace(ruleIn(namespace), "name: rule", "name: other", 1))
	s.kubectl(t, "label", "wr", "rule", "-n", namespace, "team=a")
	rules := s.client.Resource(resource("watchrules")).Namespace(namespace)
	labelled, err := rules.Watch(t.Context(), metav1.ListOptions{LabelSelector: "team=a"})
	if err != nil {
		t.Fatal(err)
	}
	defer labelled.Stop()
	named, err := rules.Watch(t.Context(), metadataName("rule"))
	if err != nil {
		t.Fatal(err)
	}
	defer named.Stop()

	s.Delete(t, namespace, "wr/other")
	s.kubectl(t, "label", "wr", "rule", "-n", namespace, "team-")
	awaitDeletion(t, labelled, "rule")
	s.Delete(t, namespace, "wr/rule")
	awaitDeletion(t, named, "rule")
}

// awaitDeletion reads events of one object until it is deleted. Status updates of the server may be in between.
func awaitDeletion(t *testing.T, w watch.Interface, name string) {
	t.Helper()
	for {
		event := next(t, w)
		if obj := event.Object.(*unstructured.Unstructured); obj.GetName() != name {
			t.Fatalf("event of %s", obj.GetName())
		}
		if event.Type == watch.Deleted {
			return
		}
	}
}

func testForeignToken(t *testing.T, s *testCluster) {
	_, err := s.client.Resource(resource("watchrules")).List(t.Context(), metav1.ListOptions{Continue: "bm90IGEgdG9rZW4"})
	if !apierrors.IsBadRequest(err) && !apierrors.IsResourceExpired(err) {
		t.Errorf("foreign continue token: %v, want BadRequest or Expired", err)
	}
}
