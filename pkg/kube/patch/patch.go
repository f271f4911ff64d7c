// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch answers what an object is with somebody's patches laid over it.
//
// A patch is read once, by Compile, and refused there for all that can be seen without an object; what is left can only
// fail on an object that is not as the patch expects. No patch changes what an object is: its apiVersion, kind, name,
// namespace and uid, what else the server keeps in its metadata, and its status.
package patch

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Type is a way to write a patch.
type Type string

const (
	// StrategicMerge is a part of an object, merged by what its type says: lists of named things by their names. It is for
	// kinds that are built into Kubernetes. Of the directives, it takes $patch and $retainKeys.
	StrategicMerge Type = "StrategicMerge"
	// JSON6902 is a list of operations (RFC 6902). Other than in kubectl, replace and copy need what they name to be there.
	JSON6902 Type = "JSON6902"
	// Merge is a part of an object, merged field by field, lists as a whole (RFC 7386).
	Merge Type = "Merge"
)

const (
	maxPatches = 100
	// maxPatchBytes bounds one patch. It is meant to be written and read by people.
	maxPatchBytes = 64 << 10
	// maxObjectBytes bounds what an object can grow to: as much as kube-apiserver takes.
	maxObjectBytes = 3 << 20
	// maxWork bounds how much all patches together write of one object, which each operation does as a whole. A few patches make it
	// large and the others have it written again and again: nobody else would be served for hours.
	maxWork = 8 << 20
)

// Patch changes the objects that its target selects.
type Patch struct {
	Target Target
	Type   Type
	// Patch is the text, YAML or JSON.
	Patch string
}

// Target selects objects.
type Target struct {
	// Group is an API group; nil selects all.
	Group *string
	Kind  string
	// Name is empty to select all.
	Name string
	// LabelSelector is nil to select all.
	LabelSelector *metav1.LabelSelector
}

// Patches are what several patches do, one after the other. The zero value changes nothing.
type Patches struct {
	compiled []compiled
}

type compiled struct {
	selector
	kind   Type
	change change
}

// change is a patch that has been read.
type change interface {
	// apply returns what an object becomes, and leaves the object as it is.
	apply(object *unstructured.Unstructured, done *work) (map[string]any, error)
}

// work is how many bytes patches have written of an object.
type work int

// add says whether that was too much.
func (w *work) add(written []byte) error {
	if *w += work(len(written)); *w > maxWork {
		return fmt.Errorf("the object has been written too often: patches write no more than %d bytes of one, and each operation writes it as a whole", maxWork)
	}
	return nil
}

// Compile reads patches. The errors name fields below the path, and never quote a patch: what is in it may be secret.
func Compile(patches []Patch, path *field.Path) (Patches, field.ErrorList) {
	if len(patches) > maxPatches {
		return Patches{}, field.ErrorList{field.TooMany(path, len(patches), maxPatches)}
	}
	var out Patches
	var errs field.ErrorList
	for i, p := range patches {
		c, invalid := compile(p, path.Index(i))
		errs = append(errs, invalid...)
		out.compiled = append(out.compiled, c)
	}
	if len(errs) > 0 {
		return Patches{}, errs
	}
	return out, nil
}

func compile(p Patch, path *field.Path) (compiled, field.ErrorList) {
	selector, errs := compileTarget(p.Target, path.Child("target"))
	change, err := read(p)
	if err != nil {
		errs = append(errs, err.below(path))
	}
	return compiled{selector, p.Type, change}, errs
}

// Apply returns the object with the patches that are for it laid over it, in their order. It is the object itself when
// none is, and else a copy. Targets select by what the object was before the first patch. An error names the patch.
func (p Patches) Apply(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, done := object, new(work)
	for i, c := range p.compiled {
		if !c.selects(object) {
			continue
		}
		patched, err := c.change.apply(out, done)
		if err == nil {
			err = checkKept(object.Object, patched)
		}
		if err != nil {
			return nil, fmt.Errorf("apply patches[%d] (%s) to %s %q: %w", i, c.kind, object.GetKind(), object.GetName(), err)
		}
		out = &unstructured.Unstructured{Object: patched}
	}
	return out, nil
}
