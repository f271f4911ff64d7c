// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
)

func TestVersions(t *testing.T) {
	tests := map[string]struct {
		copied        index.Copy
		want, newest  string
		same, another string
	}{
		"copied":            {index.Copy{Hash: "1"}, "1", "1", "1", "2"},
		"seen":              {index.Copy{Hash: "1", Seen: "2"}, "1", "2", "2", "1"},
		"seen as removed":   {index.Copy{Hash: "1", Seen: v1alpha1.SeenRemoved}, "1", v1alpha1.SeenRemoved, v1alpha1.SeenRemoved, "1"},
		"missing":           {index.Copy{Hash: "1", Missing: true}, v1alpha1.SeenRemoved, v1alpha1.SeenRemoved, v1alpha1.SeenRemoved, "1"},
		"never copied":      {index.Copy{}, v1alpha1.SeenRemoved, v1alpha1.SeenRemoved, v1alpha1.SeenRemoved, "1"},
		"missing, but seen": {index.Copy{Missing: true, Seen: "2"}, v1alpha1.SeenRemoved, "2", "2", v1alpha1.SeenRemoved},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := record(config("a"), test.copied.Hash)
			r.SeenHash, r.Missing = test.copied.Seen, test.copied.Missing
			of := stored(alice, r)
			if got := index.CopyOf(&of); got.Copied() != test.want || got.Known() != test.newest || got.Environment != alice {
				t.Errorf("%+v: copied = %q, known = %q", got, got.Copied(), got.Known())
			}
			x := index.New()
			x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{r})
			for version, want := range map[string]bool{test.same: false, test.another: true} {
				if copied, differs := x.Differs(config("a"), version); !copied || differs != want {
					t.Errorf("version %q differs: %v, copied: %v", version, differs, copied)
				}
			}
		})
	}
}

func TestMarkSeen(t *testing.T) {
	x := index.New()
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1")})
	x.Set(bob, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1")})
	x.MarkSeen(alice, config("a"), "2")
	x.MarkSeen(alice, config("b"), "2")
	if copied, _ := x.Differs(config("b"), "2"); copied {
		t.Error("an object that was only seen has a copy")
	}
	for _, version := range []string{"1", "2"} {
		if _, differs := x.Differs(config("a"), version); !differs {
			t.Errorf("version %s is known to both", version)
		}
	}
	x.MarkSeen(bob, config("a"), "2")
	if _, differs := x.Differs(config("a"), "2"); differs {
		t.Error("2 differs")
	}
	r := record(config("a"), "1")
	r.SeenHash = "2"
	records := []v1alpha1.EnvironmentDependency{stored(alice, r), stored(bob, r)}
	if wrong := x.Rebuild(records, x.Revision()); len(wrong) > 0 {
		t.Errorf("differences: %q", said(wrong))
	}
}

func TestCollections(t *testing.T) {
	x := index.New()
	secret := index.Object{Type: v1alpha1.DependencySecret, Namespace: "production", Name: "s"}
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{record(config("b"), "1"), record(config("a"), "1"), record(secret, "1")})
	x.Set(bob, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1")})
	expect := func(want string) {
		t.Helper()
		got := ""
		for _, in := range x.Collections() {
			got += fmt.Sprintf("%s %s:", in.Namespace, in.Type)
			for _, of := range x.Objects(in) {
				got += " " + of.Name
			}
			got += "\n"
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect("production ConfigMap: a b\nproduction Secret: s\n")
	x.Set(alice, nil)
	expect("production ConfigMap: a\n")
	x.Set(bob, nil)
	expect("")
}

func TestSubscribe(t *testing.T) {
	x := index.New()
	var changes []string
	stop := x.Subscribe(func(environment types.NamespacedName, changed []index.Object) {
		for _, of := range changed {
			changes = append(changes, environment.Name+" "+of.Name)
		}
		slices.Sort(changes)
		x.Lookup(changed[0]) // A subscriber can use the index.
	})
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(changes, want) {
			t.Errorf("changes %q, want %q", changes, want)
		}
		changes = nil
	}
	records := func(names ...string) (out []v1alpha1.EnvironmentDependencyRecord) {
		for _, name := range names {
			out = append(out, record(config(name), "1"))
		}
		return out
	}
	x.Set(alice, records("a", "b"))
	expect("alice a", "alice b")
	x.Set(alice, records("a", "b"))
	expect()
	x.Set(alice, records("b", "c"))
	expect("alice a", "alice c")
	x.MarkSeen(alice, config("b"), "2")
	expect()
	x.Rebuild([]v1alpha1.EnvironmentDependency{stored(alice, record(config("b"), "1")), stored(bob, record(config("a"), "1"))}, x.Revision())
	expect("alice b", "alice c", "bob a")
	stop()
	x.Set(bob, nil)
	expect()
}

// TestRebuildKeepsNewerRevisions sets and marks versions that the list of records does not have yet.
func TestRebuildKeepsNewerRevisions(t *testing.T) {
	x := index.New()
	old := []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1")}
	carol := named("carol")
	for _, environment := range []types.NamespacedName{alice, bob, carol} {
		x.Set(environment, old)
	}
	mark := x.Revision()
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "2")})
	x.MarkSeen(bob, config("a"), "2")
	x.Set(carol, nil)
	listed := []v1alpha1.EnvironmentDependency{stored(alice, old[0]), stored(bob, old[0]), stored(carol, old[0])}
	if changed := x.Rebuild(listed, mark); len(changed) > 0 || len(x.Lookup(config("a"))) != 2 {
		t.Errorf("newer copies were changed: %q", said(changed))
	}
	if changed := x.Rebuild(listed, x.Revision()); len(changed) != 3 {
		t.Errorf("older copies were kept: %q", said(changed))
	}
}
