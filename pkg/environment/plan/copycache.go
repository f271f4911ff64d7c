// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// CopyCache holds the copies of objects of a source, so that successive calls of Planner.Needs and Planner.Plan make each copy once. It must be
// used for one Environment, Revision and Marks only, and not concurrently. The zero value is ready for use.
type CopyCache struct {
	// madeFor is what the copies were made for. Between calls, only what is known about the source can differ.
	madeFor objectcopy.Target
	// made holds the copies by the objects of the source, which are never modified.
	made map[*unstructured.Unstructured]madeCopy
	// references holds what the copies refer to.
	references map[*unstructured.Unstructured][]references.Reference
}

// madeCopy is the copy of an object. It is not modified.
type madeCopy struct {
	// object and unpatched are those of desiredObject.
	object, unpatched *unstructured.Unstructured
	// omitted is the reason why the object has no copy, empty if it has one.
	omitted string
	// warnings are sentences about hosts that cannot be rendered.
	warnings []string
}

// use drops the copies if they would not be the same for a target.
func (c *CopyCache) use(target objectcopy.Target) {
	if c.made != nil && c.madeFor.Selected.Equal(target.Selected) && c.madeFor.OmittedSecrets.Equal(target.OmittedSecrets) {
		return
	}
	*c = CopyCache{
		madeFor: target, made: map[*unstructured.Unstructured]madeCopy{}, references: map[*unstructured.Unstructured][]references.Reference{},
	}
}

// referencesOf returns what a copy refers to.
func (c *CopyCache) referencesOf(made *unstructured.Unstructured) ([]references.Reference, error) {
	if found, known := c.references[made]; known {
		return found, nil
	}
	found, err := references.Of(made)
	if err == nil {
		c.references[made] = found
	}
	return found, err
}
