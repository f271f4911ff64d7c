// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// deletions shows that what is deleted was deleted by who asked for it, however it was asked and whoever let it go.
func deletions(t *testing.T, s *stage) {
	for name, test := range map[string]func(*testing.T, *stage){
		"finalizers": finalizers,
		"all":        deleteAll,
		"collection": func(t *testing.T, s *stage) { deleteCollection(t, s, "collection") },
		"recreation": recreation,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// finalizers lets one person delete what another, as a controller would, holds for a while.
func finalizers(t *testing.T, s *stage) {
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
		// That it is deleted a second time changes nothing, but a review of it does not tell.
		s.alice.run(t, "delete", "configmap", "one", "-n", m.Namespace, "--wait=false")
	}
	patch(s.carol, "one", "null")
	patch(s.carol, "two", `["example.com/b"]`)
	patch(s.carol, "two", "null")
	m.named(t, "v1/configmaps",
		claim{"one", "CREATE", "alice"}, claim{"one", "UPDATE", "alice"}, claim{"one", "DELETE", "bob"},
		claim{"two", "CREATE", "alice"}, claim{"two", "UPDATE", "alice"}, claim{"two", "UPDATE", "carol"}, claim{"two", "DELETE", "bob"},
	)
}

// deleteAll lets kubectl delete objects one by one.
func deleteAll(t *testing.T, s *stage) {
	const objects = 20
	m, claims := populated(t, s, "all", objects)
	s.bob.run(t, "delete", "configmaps", "--all", "-n", m.Namespace)
	m.named(t, "v1/configmaps", deletedBy("bob", claims)...)
}

// deleteCollection deletes more objects with one request than an audit event has room for.
func deleteCollection(t *testing.T, s *stage, namespace string) {
	const objects = 300
	m, claims := populated(t, s, namespace, objects)
	s.bob.run(t, "delete", "--raw", "/api/v1/namespaces/"+m.Namespace+"/configmaps")
	m.named(t, "v1/configmaps", deletedBy("bob", claims)...)
}

// populated makes a namespace that mirrors ConfigMaps of 1 KiB, and says who made them.
func populated(t *testing.T, s *stage, namespace string, objects int) (*mirror, []claim) {
	t.Helper()
	m := s.newMirror(t, namespace, "configmaps")
	claims := make([]claim, objects)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range claims {
		claims[i] = claim{fmt.Sprintf("c%03d", i), "CREATE", "alice"}
		group.Go(func() error { return m.set(ctx, s.alice, claims[i].object, fmt.Sprintf("%1000d", i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	m.named(t, "v1/configmaps", claims...)
	return m, claims
}

// deletedBy claims that somebody has deleted all of what was made.
func deletedBy(by string, made []claim) []claim {
	claims := append([]claim(nil), made...)
	for _, each := range made {
		claims = append(claims, claim{each.object, "DELETE", by})
	}
	return claims
}

// recreation lets people delete and make one object again and again.
func recreation(t *testing.T, s *stage) {
	m := s.newMirror(t, "recreation", "configmaps")
	people := []*person{s.alice, s.bob, s.carol}
	var claims []claim
	for i := range 12 {
		maker, remover := people[i%3], people[(i+1+i/3)%3]
		m.mustSet(t, maker, "web", "x")
		maker.run(t, "get", "configmap", "web", "-n", m.Namespace)
		remover.run(t, "delete", "configmap", "web", "-n", m.Namespace, "--wait=false")
		claims = append(claims, claim{"web", "CREATE", maker.name}, claim{"web", "DELETE", remover.name})
	}
	m.named(t, "v1/configmaps", claims...)
}
