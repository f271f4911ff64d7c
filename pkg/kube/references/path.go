// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"
	"strconv"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// path is a path within an object. Its methods return an extended copy.
type path fieldpath.Path

func (p path) field(names ...string) path {
	for _, name := range names {
		p = append(slices.Clip(p), fieldpath.Step{Field: name})
	}
	return p
}

// item appends the list item with the given name.
func (p path) item(list, name string) path {
	return append(p.field(list), fieldpath.Step{Keys: []fieldpath.Key{{Name: "name", Text: name}}})
}

// index appends an item of a list whose items have no keys.
func (p path) index(list string, i int) path { return p.field(list, strconv.Itoa(i)) }
