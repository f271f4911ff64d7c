// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"
	"strconv"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// place is a path on the way down an object. Its methods return another one and leave it as it is.
type place fieldpath.Path

func (p place) field(names ...string) place {
	for _, name := range names {
		p = append(slices.Clip(p), fieldpath.Step{Field: name})
	}
	return p
}

// item leads to the item of a list that has a name.
func (p place) item(list, name string) place {
	return append(p.field(list), fieldpath.Step{Keys: []fieldpath.Key{{Name: "name", Text: name}}})
}

// index leads to an item of a list whose items have no keys.
func (p place) index(list string, i int) place { return p.field(list, strconv.Itoa(i)) }
