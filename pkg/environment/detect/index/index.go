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

// Object is a source object.
type Object struct {
	Type            v1alpha1.DependencyType
	Namespace, Name string
}

// Collection is the set of objects of a type in a source namespace.
type Collection struct {
	Type      v1alpha1.DependencyType
	Namespace string
}

// Index indexes copies. It is safe for concurrent use.
type Index struct {
	mu sync.RWMutex
	// copies and objects contain each row once: by object, and by environment.
	copies  map[Object]map[types.NamespacedName]row
	objects map[types.NamespacedName]map[Object]row
	// known counts the copies of an object by their known versions.
	known map[Object]map[string]int
	// names are the names of the objects in copies.
	names map[Collection]sets.Set[string]
	// revision counts the writes, and revisions holds the last one of each environment.
	revision  Revision
	revisions map[types.NamespacedName]Revision

	listeners
}

// Revision is a point in the history of an index.
type Revision uint64

// New returns an empty index.
func New() *Index {
	return &Index{
		copies: map[Object]map[types.NamespacedName]row{}, objects: map[types.NamespacedName]map[Object]row{},
		known: map[Object]map[string]int{}, names: map[Collection]sets.Set[string]{}, revisions: map[types.NamespacedName]Revision{},
	}
}

// Lookup returns the copies of an object, sorted by environment.
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

// Differs reports whether an object has copies, and whether a version differs from the known one of any of them.
func (x *Index) Differs(of Object, version string) (copied, differs bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	known := x.known[of]
	return len(known) > 0, len(known) > 1 || len(known) == 1 && known[version] == 0
}

// Collections returns the collections with copied objects, sorted.
func (x *Index) Collections() []Collection {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.SortedFunc(maps.Keys(x.names), func(a, b Collection) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Type, b.Type))
	})
}

// Objects returns the copied objects of a collection, sorted.
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

// Missing returns the objects that an environment references and its source lacks, sorted. An optional object counts only
// if it was copied before.
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

// Types returns the types of an environment's copies.
func (x *Index) Types(environment types.NamespacedName) sets.Set[v1alpha1.DependencyType] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := sets.New[v1alpha1.DependencyType]()
	for of := range x.objects[environment] {
		found.Insert(of.Type)
	}
	return found
}

// Len returns the number of copies.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	number := 0
	for _, objects := range x.objects {
		number += len(objects)
	}
	return number
}

// Set replaces the copies of an environment. An empty list removes the environment.
func (x *Index) Set(environment types.NamespacedName, records []v1alpha1.EnvironmentDependencyRecord) {
	rows := make(map[Object]row, len(records))
	for i := range records {
		rows[objectOf(&records[i])] = rowOf(&records[i])
	}
	x.mu.Lock()
	changed := x.set(environment, rows)
	x.mu.Unlock()
	x.notify(environment, changed)
}

// MarkSeen sets the newest recorded version of a copy. It is empty if that is the copied one.
func (x *Index) MarkSeen(environment types.NamespacedName, of Object, version string) {
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
	x.revision++
	x.revisions[environment] = x.revision
}

// set returns the objects whose rows have changed.
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
	x.revision++
	x.revisions[environment] = x.revision
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
