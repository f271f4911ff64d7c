// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Difference is a copy for which the index and the records differ.
type Difference struct {
	Of          Object
	Environment types.NamespacedName
	// Indexed is the copy in the index and Recorded the one in the records, nil if there is none.
	Indexed, Recorded *Copy
}

// Revision returns the current revision, to be passed to Rebuild with records that are listed afterwards.
func (x *Index) Revision() Revision {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.revision
}

// Rebuild sets the index to all records, which were listed after a revision, and returns the differences it found, sorted.
// Environments that were written since that revision are left as they are.
func (x *Index) Rebuild(records []v1alpha1.EnvironmentDependency, since Revision) []Difference {
	recorded := byEnvironment(records)
	x.mu.Lock()
	differences := slices.DeleteFunc(x.compare(recorded), func(d Difference) bool { return x.revisions[d.Environment] > since })
	changed := map[types.NamespacedName][]Object{}
	for _, d := range differences {
		changed[d.Environment] = append(changed[d.Environment], d.Of)
	}
	for environment := range changed {
		x.set(environment, recorded[environment])
	}
	maps.DeleteFunc(x.revisions, func(environment types.NamespacedName, at Revision) bool {
		return at <= since && x.objects[environment] == nil
	})
	x.mu.Unlock()
	for environment, objects := range changed {
		x.notify(environment, objects)
	}
	return differences
}

func byEnvironment(records []v1alpha1.EnvironmentDependency) map[types.NamespacedName]map[Object]row {
	rows := map[types.NamespacedName]map[Object]row{}
	for i := range records {
		status := &records[i].Status
		environment := types.NamespacedName{Namespace: records[i].Namespace, Name: status.Environment}
		if rows[environment] == nil {
			rows[environment] = map[Object]row{}
		}
		rows[environment][objectOf(status)] = rowOf(status)
	}
	return rows
}

func (x *Index) compare(recorded map[types.NamespacedName]map[Object]row) []Difference {
	var found []Difference
	for environment, rows := range recorded {
		for of, r := range rows {
			held := copyIn(x.objects, environment, of)
			if is := r.copyOf(of, environment); held == nil || *held != is {
				found = append(found, Difference{of, environment, held, &is})
			}
		}
	}
	for environment, rows := range x.objects {
		for of := range rows {
			if copyIn(recorded, environment, of) == nil {
				found = append(found, Difference{of, environment, copyIn(x.objects, environment, of), nil})
			}
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(compareNames(a.Environment, b.Environment), cmp.Compare(a.Of.Type, b.Of.Type),
			cmp.Compare(a.Of.Namespace, b.Of.Namespace), cmp.Compare(a.Of.Name, b.Of.Name))
	})
	return found
}

func copyIn(all map[types.NamespacedName]map[Object]row, environment types.NamespacedName, of Object) *Copy {
	r, ok := all[environment][of]
	if !ok {
		return nil
	}
	found := r.copyOf(of, environment)
	return &found
}
