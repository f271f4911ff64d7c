// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Object is one of a source.
type Object struct {
	Type            v1alpha1.DependencyType
	Namespace, Name string
}

// Collection are the objects of a type in a namespace of a source.
type Collection struct {
	Type      v1alpha1.DependencyType
	Namespace string
}

// Index finds copies. It may be used concurrently.
type Index struct {
	mu sync.RWMutex
	// Both have each row once: copies by the object, objects by the environment.
	copies  map[Object]map[types.NamespacedName]row
	objects map[types.NamespacedName]map[Object]row
	// known counts the copies of an object by their versions.
	known map[Object]map[string]int
	// names are those of the objects in copies.
	names map[Collection]sets.Set[string]
	// now counts what is written, and written says when that was for each environment.
	now     Mark
	written map[types.NamespacedName]Mark

	listeners
}

// Mark is a point in the life of an index.
type Mark uint64

// New returns an empty index.
func New() *Index {
	return &Index{
		copies: map[Object]map[types.NamespacedName]row{}, objects: map[types.NamespacedName]map[Object]row{},
		known: map[Object]map[string]int{}, names: map[Collection]sets.Set[string]{}, written: map[types.NamespacedName]Mark{},
	}
}

// Lookup returns the copies of an object, by their environments.
func (x *Index) Lookup(of Object) []Copy {
	x.mu.RLock()
	copies := make([]Copy, 0, len(x.copies[of]))
	for environment, r := range x.copies[of] {
		copies = append(copies, r.copyOf(of, environment))
	}
	x.mu.RUnlock()
	slices.SortFunc(copies, func(a, b Copy) int { return compareNames(a.Environment, b.Environment) })
	return copies
}

// Differs says whether there are copies of an object, and whether a version of it is another than the one that is known of any.
func (x *Index) Differs(of Object, version string) (copied, differs bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	known := x.known[of]
	return len(known) > 0, len(known) > 1 || len(known) == 1 && known[version] == 0
}

// Collections returns those that have objects of which there are copies, in order.
func (x *Index) Collections() []Collection {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(x.names), func(a, b Collection) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Type, b.Type))
	})
}

// Objects returns those of a collection of which there are copies, in order.
func (x *Index) Objects(in Collection) []Object {
	x.mu.RLock()
	names := sets.List(x.names[in])
	x.mu.RUnlock()
	objects := make([]Object, len(names))
	for i, name := range names {
		objects[i] = Object{in.Type, in.Namespace, name}
	}
	return objects
}

// Missing returns what an environment refers to and its source does not have, in order. What is optional counts only if there is a
// copy of it, which the source had before.
func (x *Index) Missing(environment types.NamespacedName) []Object {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var missing []Object
	for of, r := range x.objects[environment] {
		if r.missing && !(r.optional && r.hash == "") {
			missing = append(missing, of)
		}
	}
	slices.SortFunc(missing, func(a, b Object) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	return missing
}

// Types are the types of what an environment has copies of.
func (x *Index) Types(environment types.NamespacedName) sets.Set[v1alpha1.DependencyType] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := sets.New[v1alpha1.DependencyType]()
	for of := range x.objects[environment] {
		found.Insert(of.Type)
	}
	return found
}

// Len is the number of copies.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number := 0
	for _, objects := range x.objects {
		number += len(objects)
	}
	return number
}

// Set replaces what is known of an environment by what is recorded of it; by nothing if the environment is gone.
func (x *Index) Set(environment types.NamespacedName, records []v1alpha1.EnvironmentDependencyRecord) {
	rows := make(map[Object]row, len(records))
	for i := range records {
		rows[objectOf(&records[i])] = rowOf(&records[i])
	}
	x.mu.Lock()
	changed := x.set(environment, rows)
	x.mu.Unlock()
	x.tell(environment, changed)
}

// See notes the newest version that the record of a copy tells of, empty for the version that was copied.
func (x *Index) See(environment types.NamespacedName, of Object, version string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.objects[environment][of]
	if !ok {
		return
	}
	x.remove(of, environment)
	r.seen = version
	x.objects[environment][of] = r
	x.add(of, environment, r)
	x.now++
	x.written[environment] = x.now
}

// set returns the objects of which something else is known afterwards.
func (x *Index) set(environment types.NamespacedName, rows map[Object]row) (changed []Object) {
	before := x.objects[environment]
	for of := range before {
		if _, stays := rows[of]; !stays {
			changed = append(changed, of)
		}
		x.remove(of, environment)
	}
	delete(x.objects, environment)
	if len(rows) > 0 {
		x.objects[environment] = rows
	}
	for of, r := range rows {
		if was, ok := before[of]; !ok || was != r {
			changed = append(changed, of)
		}
		x.add(of, environment, r)
	}
	x.now++
	x.written[environment] = x.now
	return changed
}

func (x *Index) add(of Object, environment types.NamespacedName, r row) {
	if x.copies[of] == nil {
		x.copies[of], x.known[of] = map[types.NamespacedName]row{}, map[string]int{}
		in := collectionOf(of)
		if x.names[in] == nil {
			x.names[in] = sets.New[string]()
		}
		x.names[in].Insert(of.Name)
	}
	x.copies[of][environment] = r
	x.known[of][r.known()]++
}

func (x *Index) remove(of Object, environment types.NamespacedName) {
	version := x.copies[of][environment].known()
	if x.known[of][version]--; x.known[of][version] == 0 {
		delete(x.known[of], version)
	}
	delete(x.copies[of], environment)
	if len(x.copies[of]) > 0 {
		return
	}
	delete(x.copies, of)
	delete(x.known, of)
	in := collectionOf(of)
	x.names[in].Delete(of.Name)
	if x.names[in].Len() == 0 {
		delete(x.names, in)
	}
}

func collectionOf(of Object) Collection { return Collection{of.Type, of.Namespace} }

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
