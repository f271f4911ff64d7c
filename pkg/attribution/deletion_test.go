// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestNamespacesOfOneName checks that the deletion of a namespace is not attributed to objects of a later one of that name.
func TestNamespacesOfOneName(t *testing.T) {
	deletion := func(user, version string) Fact {
		return Fact{
			ID: user, Signal: Audit, Operation: deleted, Resource: "namespaces", Name: "shop", UID: types.UID("of-" + user), After: version,
			Lasting: true, Begun: time.Now(), Ended: time.Now(), Actor: Actor{Username: user},
		}
	}
	cases := map[string]struct {
		created time.Duration
		again   []Fact
		want    string
	}{
		"deleted again":              {created: 30 * time.Minute, again: []Fact{deletion("bob", "9")}, want: "bob"},
		"deleted again, without uid": {created: 30 * time.Minute},
		"deleted once":               {created: -time.Minute, want: "ann"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				created := time.Now().Add(c.created)
				s.Add([]Fact{deletion("ann", "3")}, false)
				pass(time.Hour)
				for _, fact := range c.again {
					fact.Begun, fact.Ended = time.Now(), time.Now()
					s.Add([]Fact{fact}, false)
				}
				event := configMap("web", "u1", "12").with(created.UTC().Format(time.RFC3339), "metadata", "creationTimestamp").event(deleted, "")
				s.Add([]Fact{factOf(namespaceController, Audit, deleted, event)}, false)
				s.submit(event)
				pass(maxWait)
				if got := s.deliveries(); len(got) != 1 || got[0].author.Username != namespaceController || got[0].author.NamespaceDeletedBy != c.want {
					t.Errorf("delivered %+v, want %q", got, c.want)
				}
			})
		})
	}
}
