// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"slices"

	"github.com/configbutler/slipstream/pkg/fieldpointer"
)

// identity is what tells objects apart, and must not be left out.
var identity = []fieldpointer.Path{
	{{Field: "apiVersion"}}, {{Field: "kind"}}, {{Field: "metadata"}},
	{{Field: "metadata"}, {Field: "name"}}, {{Field: "metadata"}, {Field: "namespace"}},
}

func isIdentity(p fieldpointer.Path) bool { return slices.ContainsFunc(identity, p.Equal) }

// errIdentity refuses what would make two objects one.
var errIdentity = errors.New("must not leave out what tells objects apart: apiVersion, kind, metadata.name and metadata.namespace")

// CheckPointer says what is wrong with a pointer, as pkg/fieldpointer reads it.
func CheckPointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}

func parsePointer(pointer string) (fieldpointer.Path, error) {
	p, err := fieldpointer.Parse(pointer)
	if err != nil {
		return nil, err
	}
	if isIdentity(p) {
		return nil, errIdentity
	}
	return p, nil
}
