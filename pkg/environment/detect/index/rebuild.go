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

// Mark returns what Rebuild is to be given with records that are listed afterwards.
func (x *Index) Mark() Mark {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.now
}

// Rebuild makes the index what all records say that were listed after a mark, and returns where it differed. What is known of an
// environment since then is left as it is.
func (x *Index) Rebuild(records []v1alpha1.EnvironmentDependency, since Mark) []Difference {
	recorded := byEnvironment(records)
	x.mu.Lock()
	differences := slices.DeleteFunc(x.compare(recorded), func(d Difference) bool { return x.written[d.Environment] > since })
	changed := map[types.NamespacedName][]Object{}
	for _, d := range differences {
		changed[d.Environment] = append(changed[d.Environment], d.Of)
	}
	for environment := range changed {
		x.set(environment, recorded[environment])
	}
	maps.DeleteFunc(x.written, func(environment types.NamespacedName, at Mark) bool {
		return at <= since && x.objects[environment] == nil
	})
	x.mu.Unlock()
	for environment, objects := range changed {
		x.tell(environment, objects)
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
