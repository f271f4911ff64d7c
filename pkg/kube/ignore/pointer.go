// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"slices"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// identity is what tells objects apart, and must not be left out.
var identity = []fieldpath.Path{
	{{Field: "apiVersion"}}, {{Field: "kind"}}, {{Field: "metadata"}},
	{{Field: "metadata"}, {Field: "name"}}, {{Field: "metadata"}, {Field: "namespace"}},
}

func isIdentity(p fieldpath.Path) bool { return slices.ContainsFunc(identity, p.Equal) }

// errIdentity refuses what would make two objects one.
var errIdentity = errors.New("must not leave out what tells objects apart: apiVersion, kind, metadata.name and metadata.namespace")

// CheckPointer says what is wrong with a pointer, as pkg/kube/fieldpath reads it.
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
