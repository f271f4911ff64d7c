// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"slices"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// identity lists the fields that identify an object and must not be ignored.
var identity = []fieldpath.Path{
	{{Field: "apiVersion"}}, {{Field: "kind"}}, {{Field: "metadata"}},
	{{Field: "metadata"}, {Field: "name"}}, {{Field: "metadata"}, {Field: "namespace"}},
}

func isIdentity(p fieldpath.Path) bool { return slices.ContainsFunc(identity, p.Equal) }

// errIdentity rejects rules that would make two objects indistinguishable.
var errIdentity = errors.New("must not leave out what tells objects apart: apiVersion, kind, metadata.name and metadata.namespace")

// CheckPointer validates a path in the syntax of pkg/kube/fieldpath.
func CheckPointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}

func parsePointer(pointer string) (fieldpath.Path, error) {
	p, err := fieldpath.Parse(pointer)
	if err != nil {
		return nil, err
	}
	if isIdentity(p) {
		return nil, errIdentity
	}
	return p, nil
}
