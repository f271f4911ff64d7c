// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Copy is what an environment has of an object.
type Copy struct {
	Environment types.NamespacedName
	// Record is the name of the EnvironmentDependency.
	Record string
	// Hash is that of the version that was copied, empty if none was.
	Hash string
	// Seen is the newest version that has been told of: its hash, or v1alpha1.SeenRemoved. Empty if it is the one that was copied.
	Seen string
	// Missing says that the source did not have the object when it was last looked for.
	Missing bool
}

// CopyOf is what a record says.
func CopyOf(record *v1alpha1.EnvironmentDependency) Copy {
	environment := types.NamespacedName{Namespace: record.Namespace, Name: record.Status.Environment}
	return rowOf(&record.Status).copyOf(objectOf(&record.Status), environment)
}

// Copied is the version that the source had when the environment was last brought to it: its hash, or v1alpha1.SeenRemoved.
func (c Copy) Copied() string { return row{hash: c.Hash, missing: c.Missing}.copied() }

// Known is the newest version that was copied or told of: its hash, or v1alpha1.SeenRemoved.
func (c Copy) Known() string { return row{hash: c.Hash, missing: c.Missing, seen: c.Seen}.known() }

// row is a Copy without what it is found by.
type row struct {
	target, hash, seen string
	missing, optional  bool
}

func rowOf(record *v1alpha1.EnvironmentDependencyRecord) row {
	return row{record.Target.Name, record.Hash, record.SeenHash, record.Missing, record.Optional}
}

func (r row) copyOf(of Object, environment types.NamespacedName) Copy {
	return Copy{environment, v1alpha1.EnvironmentDependencyName(environment.Name, of.Type, r.target), r.hash, r.seen, r.missing}
}

func (r row) copied() string {
	if r.missing || r.hash == "" {
		return v1alpha1.SeenRemoved
	}
	return r.hash
}

func (r row) known() string { return cmp.Or(r.seen, r.copied()) }

func objectOf(record *v1alpha1.EnvironmentDependencyRecord) Object {
	return Object{record.Type, record.Source.Namespace, record.Source.Name}
}
