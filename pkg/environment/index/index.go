// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Object is one of a source.
type Object struct {
	Type            v1alpha1.DependencyType
	Namespace, Name string
}

// Copy is what an environment has of an object.
type Copy struct {
	Environment types.NamespacedName
	// Hash is that of the version that was copied, empty if none was.
	Hash string
	// Missing says that the source did not have the object when it was last looked for.
	Missing bool
}

// row is a Copy without its environment.
type row struct {
	hash    string
	missing bool
}

// Index finds copies. It may be used concurrently.
type Index struct {
	mu sync.RWMutex
	// Both have each row once: copies by the object, objects by the environment.
	copies  map[Object]map[types.NamespacedName]row
	objects map[types.NamespacedName]map[Object]row
}

// New returns an empty index.
func New() *Index {
	return &Index{copies: map[Object]map[types.NamespacedName]row{}, objects: map[types.NamespacedName]map[Object]row{}}
}

// Lookup returns the copies of an object, by their environments.
func (x *Index) Lookup(of Object) []Copy {
	x.mu.RLock()
	copies := make([]Copy, 0, len(x.copies[of]))
	for environment, r := range x.copies[of] {
		copies = append(copies, Copy{environment, r.hash, r.missing})
	}
	x.mu.RUnlock()
	slices.SortFunc(copies, func(a, b Copy) int { return compareNames(a.Environment, b.Environment) })
	return copies
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
	defer x.mu.Unlock()
	x.set(environment, rows)
}

func (x *Index) set(environment types.NamespacedName, rows map[Object]row) {
	for of := range x.objects[environment] {
		delete(x.copies[of], environment)
		if len(x.copies[of]) == 0 {
			delete(x.copies, of)
		}
	}
	delete(x.objects, environment)
	if len(rows) == 0 {
		return
	}
	x.objects[environment] = rows
	for of, r := range rows {
		if x.copies[of] == nil {
			x.copies[of] = map[types.NamespacedName]row{}
		}
		x.copies[of][environment] = r
	}
}

func objectOf(record *v1alpha1.EnvironmentDependencyRecord) Object {
	return Object{record.Type, record.Source.Namespace, record.Source.Name}
}

func rowOf(record *v1alpha1.EnvironmentDependencyRecord) row { return row{record.Hash, record.Missing} }

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
