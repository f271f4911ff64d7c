// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/source"
)

// copyOfCluster applies what it is told to a map, as a consumer does.
type copyOfCluster struct {
	versions map[types.NamespacedName]string
	seeding  *source.Seeding
	// last is the newest version applied per object, deletions included.
	last map[types.NamespacedName]int
	// stepsBack counts what was applied although something newer had been.
	stepsBack int
}

func (c *copyOfCluster) changed(change source.Change) {
	if !c.seeding.Changed(change) {
		return
	}
	c.apply(change.Object)
	if change.Operation == source.Delete {
		delete(c.versions, nameOf(change.Object))
	}
}

func (c *copyOfCluster) listed(object *unstructured.Unstructured) {
	if c.seeding.Listed(object) {
		c.apply(object)
	}
}

func (c *copyOfCluster) apply(object *unstructured.Unstructured) {
	name := nameOf(object)
	version, _ := strconv.Atoi(object.GetResourceVersion())
	if version < c.last[name] {
		c.stepsBack++
	}
	c.last[name] = version
	c.versions[name] = object.GetResourceVersion()
}

func (c *copyOfCluster) finish() {
	maps.DeleteFunc(c.versions, func(name types.NamespacedName, _ string) bool { return c.seeding.Gone(name) })
}

func nameOf(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Whatever the interleaving of a list with the changes, and wherever the list goes over to a newer version, the copy
// ends equal to the cluster, and no object ever goes back to an earlier state.
func TestSeedingEndsEqualToTheCluster(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		got, want := seedAtRandom(random)
		if !maps.Equal(got.versions, want) || got.stepsBack > 0 {
			t.Fatalf("seed %d: got %v with %d steps back, want %v", seed, got.versions, got.stepsBack, want)
		}
	}
}

func seedAtRandom(random *rand.Rand) (got *copyOfCluster, want map[types.NamespacedName]string) {
	const names = 6
	live := map[types.NamespacedName]string{}
	var pending []source.Change
	version := 1
	step := func() source.Change {
		version++
		object := widget(strconv.Itoa(random.IntN(names)), version)
		operation := source.Update
		if random.IntN(2) == 0 {
			operation = source.Delete
			delete(live, nameOf(object))
		} else {
			live[nameOf(object)] = object.GetResourceVersion()
		}
		return source.Change{Operation: operation, Object: object}
	}
	for range 10 {
		step()
	}
	// The consumer knows an older state than that at which the watch starts.
	c := &copyOfCluster{versions: maps.Clone(live), seeding: source.NewSeeding(), last: map[types.NamespacedName]int{}}
	for range 10 {
		step()
	}
	happen := func() {
		for range random.IntN(4) {
			pending = append(pending, step())
		}
		for len(pending) > 0 && random.IntN(3) > 0 {
			c.changed(pending[0])
			pending = pending[1:]
		}
	}
	page := maps.Clone(live)
	for i := range names {
		happen()
		if random.IntN(names) == 0 {
			page = maps.Clone(live)
		}
		name := types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)}
		if read, ok := page[name]; ok {
			happen()
			object := widget(name.Name, 0)
			object.SetResourceVersion(read)
			c.listed(object)
		}
	}
	happen()
	c.finish()
	for _, change := range pending {
		c.changed(change)
	}
	return c, live
}

func TestSeedingTrustsTheWatchWhereVersionsCannotBeCompared(t *testing.T) {
	seeding := source.NewSeeding()
	object := widget("a", 1)
	object.SetResourceVersion("opaque")
	seeding.Changed(source.Change{Operation: source.Delete, Object: object})
	if seeding.Listed(object) {
		t.Error("the list wins over a deletion")
	}
}
