// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// deletions checks that deletions are attributed to the user who requested them, for each kind of request.
func deletions(t *testing.T, s *testCluster) {
	for name, test := range map[string]func(*testing.T, *testCluster){
		"finalizers": finalizers,
		"all":        deleteAll,
		"collection": func(t *testing.T, s *testCluster) { deleteCollection(t, s, "collection") },
		"recreation": recreation,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// finalizers has one user delete objects whose finalizers other users remove later, as controllers would. The response to
// the removal of the last finalizer has the resourceVersion of the update before, and managedFields do not show which was first, since they
// keep the time at which the finalizers were added.
func finalizers(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "finalizers", "configmaps")
	patch := func(by *person, name, finalizers string) {
		by.run(t, "patch", "configmap", name, "-n", m.Namespace, "--type=merge", "-p", `{"metadata":{"finalizers":`+finalizers+`}}`)
	}
	m.mustSet(t, s.alice, "one", "x")
	patch(s.alice, "one", `["example.com/a"]`)
	m.mustSet(t, s.alice, "two", "x")
	patch(s.alice, "two", `["example.com/a","example.com/b"]`)

	s.bob.run(t, "delete", "configmap", "one", "two", "-n", m.Namespace, "--wait=false")
	if s.exact {
		// A second deletion changes nothing. A review of it cannot be distinguished from the first.
		s.alice.run(t, "delete", "configmap", "one", "-n", m.Namespace, "--wait=false")
	}
	patch(s.carol, "one", "null")
	m.waitForNextSecond(t, "two")
	patch(s.carol, "two", `["example.com/b"]`)
	patch(s.alice, "two", "null")
	m.expectAuthors(t, "v1/configmaps",
		expected{"one", "CREATE", "alice"}, expected{"one", "UPDATE", "alice"}, expected{"one", "DELETE", "bob"},
		expected{"two", "CREATE", "alice"}, expected{"two", "UPDATE", "alice"},
		expected{"two", "UPDATE", "carol"}, expected{"two", "DELETE", "bob"},
	)
}

// deleteAll has kubectl delete objects one by one.
func deleteAll(t *testing.T, s *testCluster) {
	const objects = 20
	m, wants := populated(t, s, "all", objects)
	s.bob.run(t, "delete", "configmaps", "--all", "-n", m.Namespace)
	m.expectAuthors(t, "v1/configmaps", deletedBy("bob", wants)...)
}

// deleteCollection deletes so many objects with one request that an audit event of more than 100 KiB is truncated.
func deleteCollection(t *testing.T, s *testCluster, namespace string) {
	const objects = 150
	m, wants := populated(t, s, namespace, objects)
	s.bob.run(t, "delete", "--raw", "/api/v1/namespaces/"+m.Namespace+"/configmaps")
	m.expectAuthors(t, "v1/configmaps", deletedBy("bob", wants)...)
}

// populated creates a namespace with mirrored ConfigMaps of 1 KiB, and returns the expected commits.
func populated(t *testing.T, s *testCluster, namespace string, objects int) (*mirror, []expected) {
	t.Helper()
	m := s.newMirror(t, namespace, "configmaps")
	wants := make([]expected, objects)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range wants {
		wants[i] = expected{fmt.Sprintf("c%03d", i), "CREATE", "alice"}
		group.Go(func() error { return m.set(ctx, s.alice, wants[i].object, fmt.Sprintf("%1000d", i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	m.expectAuthors(t, "v1/configmaps", wants...)
	return m, wants
}

// deletedBy returns the expected commits after a user has deleted all objects.
func deletedBy(by string, made []expected) []expected {
	wants := append([]expected(nil), made...)
	for _, each := range made {
		wants = append(wants, expected{each.object, "DELETE", by})
	}
	return wants
}

// recreation has users create and delete one object repeatedly.
func recreation(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "recreation", "configmaps")
	people := []*person{s.alice, s.bob, s.carol}
	var wants []expected
	for i := range 12 {
		maker, remover := people[i%3], people[(i+1+i/3)%3]
		m.mustSet(t, maker, "web", "x")
		maker.run(t, "get", "configmap", "web", "-n", m.Namespace)
		remover.run(t, "delete", "configmap", "web", "-n", m.Namespace, "--wait=false")
		wants = append(wants, expected{"web", "CREATE", maker.name}, expected{"web", "DELETE", remover.name})
	}
	m.expectAuthors(t, "v1/configmaps", wants...)
}
