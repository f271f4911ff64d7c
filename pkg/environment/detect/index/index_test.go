// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
)

var alice, bob = named("alice"), named("bob")

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "teams", Name: name}
}

func config(name string) index.Object {
	return index.Object{Type: v1alpha1.DependencyConfigMap, Namespace: "production", Name: name}
}

func record(of index.Object, hash string) v1alpha1.EnvironmentDependencyRecord {
	named := v1alpha1.NamespacedObjectReference{Namespace: of.Namespace, Name: of.Name}
	return v1alpha1.EnvironmentDependencyRecord{Type: of.Type, Source: named, Target: named, Hash: hash, Missing: hash == ""}
}

func stored(environment types.NamespacedName, r v1alpha1.EnvironmentDependencyRecord) v1alpha1.EnvironmentDependency {
	r.Environment = environment.Name
	return v1alpha1.EnvironmentDependency{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace}, Status: r}
}

// TestMissing has optional objects: one that was never copied is not missing.
func TestMissing(t *testing.T) {
	optional := func(r v1alpha1.EnvironmentDependencyRecord) v1alpha1.EnvironmentDependencyRecord {
		r.Optional, r.Missing = true, true
		return r
	}
	x := index.New()
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{
		record(config("copied"), "1"), record(config("needed"), ""),
		optional(record(config("never"), "")), optional(record(config("removed"), "1")),
	})
	if diff := cmp.Diff([]index.Object{config("needed"), config("removed")}, x.Missing(alice)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	x := index.New()
	x.Set(bob, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1"), record(config("b"), "")})
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "2")})
	tests := map[string]struct {
		of   index.Object
		want []index.Copy
	}{
		"of two": {config("a"), []index.Copy{
			{Environment: alice, Record: "alice.configmap.a", Hash: "2"}, {Environment: bob, Record: "bob.configmap.a", Hash: "1"},
		}},
		"of one":            {config("b"), []index.Copy{{Environment: bob, Record: "bob.configmap.b", Missing: true}}},
		"another name":      {config("c"), []index.Copy{}},
		"another namespace": {index.Object{Type: v1alpha1.DependencyConfigMap, Namespace: "staging", Name: "a"}, []index.Copy{}},
		"another type":      {index.Object{Type: v1alpha1.DependencySecret, Namespace: "production", Name: "a"}, []index.Copy{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, x.Lookup(test.of)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
	x.Set(bob, []v1alpha1.EnvironmentDependencyRecord{record(config("b"), "3")})
	if got := x.Lookup(config("a")); len(got) != 1 || got[0].Environment != alice {
		t.Errorf("removed copy of bob was found: %v", got)
	}
	x.Set(bob, nil)
	if got := x.Lookup(config("b")); len(got) != 0 || x.Len() != 1 {
		t.Errorf("after bob was removed: %v of %d", got, x.Len())
	}
}

func TestRebuild(t *testing.T) {
	x := index.New()
	x.Set(alice, []v1alpha1.EnvironmentDependencyRecord{record(config("same"), "1"), record(config("old"), "1"), record(config("lost"), "1")})
	x.Set(bob, []v1alpha1.EnvironmentDependencyRecord{record(config("same"), "1")})
	records := []v1alpha1.EnvironmentDependency{
		stored(alice, record(config("same"), "1")), stored(alice, record(config("old"), "2")), stored(alice, record(config("new"), "1")),
	}
	want := []string{
		"alice lost alice.configmap.lost=1 <nil>", "alice new <nil> alice.configmap.new=1",
		"alice old alice.configmap.old=1 alice.configmap.old=2", "bob same bob.configmap.same=1 <nil>",
	}
	if diff := cmp.Diff(want, said(x.Rebuild(records, x.Revision()))); diff != "" {
		t.Errorf("rebuild: want -, got +:\n%s", diff)
	}
	if left := x.Rebuild(records, x.Revision()); len(left) > 0 || x.Len() != 3 || len(x.Lookup(config("same"))) != 1 {
		t.Errorf("rebuilt: %q", said(left))
	}
}

func said(differences []index.Difference) []string {
	text := func(c *index.Copy) string {
		if c == nil {
			return "<nil>"
		}
		return c.Record + "=" + c.Hash
	}
	var lines []string
	for _, d := range differences {
		lines = append(lines, strings.Join([]string{d.Environment.Name, d.Of.Name, text(d.Indexed), text(d.Recorded)}, " "))
	}
	return lines
}

// TestRandomSets compares the index with a list.
func TestRandomSets(t *testing.T) {
	source := rand.New(rand.NewSource(1))
	x := index.New()
	all := map[types.NamespacedName][]v1alpha1.EnvironmentDependencyRecord{}
	for round := range 500 {
		environment := named(fmt.Sprint(source.Intn(6)))
		var records []v1alpha1.EnvironmentDependencyRecord
		for _, i := range source.Perm(5)[:source.Intn(5)] {
			records = append(records, record(config(fmt.Sprint(i)), fmt.Sprint(source.Intn(3))))
		}
		all[environment] = records
		x.Set(environment, records)
		var list []v1alpha1.EnvironmentDependency
		for environment, records := range all {
			for _, r := range records {
				list = append(list, stored(environment, r))
			}
		}
		if wrong := x.Rebuild(list, x.Revision()); len(wrong) > 0 || x.Len() != len(list) {
			t.Fatalf("round %d: %d copies, want %d: %q", round, x.Len(), len(list), said(wrong))
		}
		checkLookups(t, x, list)
	}
}

func checkLookups(t *testing.T, x *index.Index, list []v1alpha1.EnvironmentDependency) {
	t.Helper()
	for i := range 5 {
		of := config(fmt.Sprint(i))
		var want []string
		for _, r := range list {
			if r.Status.Source.Name == of.Name {
				want = append(want, r.Status.Environment+r.Status.Hash)
			}
		}
		var got []string
		for _, c := range x.Lookup(of) {
			got = append(got, c.Environment.Name+c.Hash)
		}
		for _, version := range []string{"0", "1", "2"} {
			isOther := func(c index.Copy) bool { return c.Known() != version }
			copied, differs := x.Differs(of, version)
			if all := x.Lookup(of); copied != (len(all) > 0) || differs != slices.ContainsFunc(all, isOther) {
				t.Fatalf("%v as %q: copied %v, differs %v, among %v", of, version, copied, differs, all)
			}
		}
		slices.Sort(want)
		if !slices.Equal(want, got) {
			t.Fatalf("%v: %q, want %q", of, got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	x := index.New()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for range 100 {
				x.Set(named(fmt.Sprint(i)), []v1alpha1.EnvironmentDependencyRecord{record(config("a"), "1")})
				if n := len(x.Lookup(config("a"))); n == 0 || n > 4 {
					t.Errorf("%d copies", n)
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkLookup looks up an object of ten environments, for several numbers of environments.
func BenchmarkLookup(b *testing.B) {
	for _, environments := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("environments=%d", environments), func(b *testing.B) {
			x := index.New()
			for i := range environments {
				records := []v1alpha1.EnvironmentDependencyRecord{record(config(fmt.Sprint("app-", i/10)), "1")}
				for j := range 9 {
					records = append(records, record(config(fmt.Sprint("own-", i, "-", j)), "1"))
				}
				x.Set(named(fmt.Sprint(i)), records)
			}
			for i := 0; b.Loop(); i++ {
				if n := len(x.Lookup(config(fmt.Sprint("app-", i%(environments/10))))); n != 10 {
					b.Fatalf("%d copies", n)
				}
			}
		})
	}
}
