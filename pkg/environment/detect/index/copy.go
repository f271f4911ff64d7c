// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Copy is an environment's copy of a source object.
type Copy struct {
	Environment types.NamespacedName
	// Record is the name of the EnvironmentDependency.
	Record string
	// Hash is the copied version, empty if nothing was copied.
	Hash string
	// Seen is the newest recorded version: its hash, or v1alpha1.SeenRemoved. It is empty if that is the copied one.
	Seen string
	// Missing is true if the source did not have the object when it was last read.
	Missing bool
}

// CopyOf returns the copy that a record describes.
func CopyOf(record *v1alpha1.EnvironmentDependency) Copy {
	environment := types.NamespacedName{Namespace: record.Namespace, Name: record.Status.Environment}
	return rowOf(&record.Status).copyOf(objectOf(&record.Status), environment)
}

// Copied returns the version of the source at the last sync: its hash, or v1alpha1.SeenRemoved.
func (c Copy) Copied() string { return row{hash: c.Hash, missing: c.Missing}.copied() }

// Known returns the newest version that was copied or recorded: its hash, or v1alpha1.SeenRemoved.
func (c Copy) Known() string { return row{hash: c.Hash, missing: c.Missing, seen: c.Seen}.known() }

// row is a Copy without its keys.
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
