// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// position is how far a comparison has brought the files of a scope to the state of a list.
type position struct {
	resourceVersion string
	// through is the greatest key of the objects that were compared; empty if the comparison is complete. API servers list
	// objects in the order of their keys. If one does not, through may include objects that were not compared: the
	// comparison is repeated, so only the authors of their changes may be lost. The files of deleted objects are not removed
	// before the comparison is complete, whatever their keys.
	through string
}

// keyOf returns the key of an object in the order of a list.
func keyOf(namespace, name string) string { return namespace + "/" + name }

// supersedes reports whether the comparison has compared the file of an object with the state after a change, or with a later one, so that
// the change would revert the file. removed is set if the object does not exist any more: only a complete comparison has removed its file.
func (p position) supersedes(object outbox.Object, resourceVersion string, removed bool) bool {
	if p.through != "" && (removed || keyOf(object.Namespace, object.Name) > p.through) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(resourceVersion, p.resourceVersion)
	return err == nil && order <= 0
}

// includes reports whether p supersedes every change that other supersedes. A position whose version cannot be compared supersedes none.
func (p position) includes(other position) bool {
	if _, err := resourceversion.CompareResourceVersion(other.resourceVersion, other.resourceVersion); err != nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(other.resourceVersion, p.resourceVersion)
	return err == nil && order <= 0 && (p.through == "" || other.through != "" && other.through <= p.through)
}
