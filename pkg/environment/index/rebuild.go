// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Difference is a copy of which the index and the records say something different.
type Difference struct {
	Of          Object
	Environment types.NamespacedName
	// Held is what the index says, Recorded what the records do; nil if there is nothing.
	Held, Recorded *Copy
}

// Compare returns where the index differs from all records there are, by environments and objects. What is set while the records
// are being listed may differ without being wrong.
func (x *Index) Compare(records []v1alpha1.EnvironmentDependency) []Difference {
	recorded := byEnvironment(records)
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.compare(recorded)
}

// Rebuild makes the index what all records say, and returns where it differed. Nothing may be set between the listing of the
// records and then: it would be lost.
func (x *Index) Rebuild(records []v1alpha1.EnvironmentDependency) []Difference {
	recorded := byEnvironment(records)
	x.mu.Lock()
	defer x.mu.Unlock()
	differences := x.compare(recorded)
	for environment := range x.objects {
		x.set(environment, recorded[environment])
	}
	for environment, rows := range recorded {
		x.set(environment, rows)
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
			if is := (Copy{environment, r.hash, r.missing}); held == nil || *held != is {
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
	return &Copy{environment, r.hash, r.missing}
}
