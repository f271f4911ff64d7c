// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch applies user-declared patches to objects.
//
// Compile parses a patch and rejects everything that is wrong regardless of an object. Apply only fails on an object
// that is not as the patch expects. No patch changes an object's identity (apiVersion, kind, name, namespace, uid),
// other server-managed metadata, or its status.
package patch

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Type is the format of a patch.
type Type string

const (
	// StrategicMerge is a part of an object, merged by the schema of its type, with list items matched by their keys.
	// It requires kinds that are built into Kubernetes. The supported directives are $patch and $retainKeys.
	StrategicMerge Type = "StrategicMerge"
	// JSON6902 is a list of operations (RFC 6902). Unlike in kubectl, replace and copy require their target to exist.
	JSON6902 Type = "JSON6902"
	// Merge is a part of an object, merged field by field, lists as a whole (RFC 7386).
	Merge Type = "Merge"
)

const (
	maxPatches = 100
	// maxPatchBytes bounds one patch, which is meant to be written and read by hand.
	maxPatchBytes = 64 << 10
	// maxObjectBytes bounds the size of a patched object: the limit of kube-apiserver.
	maxObjectBytes = 3 << 20
	// maxWritten bounds how many bytes all patches together write of one object. Each operation writes the whole
	// object, so a few patches that grow it and many that rewrite it would block all other requests for hours.
	maxWritten = 8 << 20
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

// Patches is a compiled list of patches, applied in order. The zero value changes nothing.
type Patches struct {
	compiled []compiled
}

type compiled struct {
	selector
	kind   Type
	change change
}

// change is a parsed patch.
type change interface {
	// apply returns the patched object and leaves the given one unchanged.
	apply(object *unstructured.Unstructured, done *byteCount) (map[string]any, error)
}

// byteCount counts the bytes that patches have written of an object.
type byteCount int

// add returns an error once the count exceeds maxWritten.
func (w *byteCount) add(written []byte) error {
	if *w += byteCount(len(written)); *w > maxWritten {
		return fmt.Errorf("the object has been written too often: patches write no more than %d bytes of one, "+
			"and each operation writes it as a whole", maxWritten)
	}
	return nil
}

// Compile parses patches. The errors name fields below the path, and never quote a patch, which may hold secrets.
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

// Apply applies the patches that select the object, in order. It returns the object itself if none does, and a copy
// otherwise. Targets select by the object as it was before the first patch. An error names the patch.
func (p Patches) Apply(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out, done := object, new(byteCount)
	for i, c := range p.compiled {
		if !c.selects(object) {
			continue
		}
		patched, err := c.change.apply(out, done)
		if err == nil {
			err = checkImmutable(object.Object, patched)
		}
		if err != nil {
			return nil, fmt.Errorf("apply patches[%d] (%s) to %s %q: %w", i, c.kind, object.GetKind(), object.GetName(), err)
		}
		out = &unstructured.Unstructured{Object: patched}
	}
	return out, nil
}
