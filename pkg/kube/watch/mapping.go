// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindMapper finds the resources of kinds, as a meta.RESTMapper does.
type KindMapper interface {
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

var _ KindMapper = &Types{}

// errNotDiscovered is returned before the first discovery has succeeded.
var errNotDiscovered = errors.New("the resource types of the API server have not been discovered yet")

// RESTMapping returns the resource of a kind in the first of versions that is served, or without versions in the preferred one. If
// the API server does not serve the kind, meta.IsNoMatchError recognizes the error. Any other error means that this is not known,
// because discovery has not succeeded yet or has failed for the group.
func (t *Types) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	snapshot := t.Snapshot()
	if snapshot == nil {
		return nil, errNotDiscovered
	}
	return snapshot.restMapping(kind, versions)
}

func (s *Snapshot) restMapping(kind schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	if len(versions) == 0 {
		if found, ok := s.find(kind, func(t Type) bool { return t.Preferred }); ok {
			return found, nil
		}
	}
	for _, version := range versions {
		if found, ok := s.find(kind, func(t Type) bool { return t.Resource.Version == version }); ok {
			return found, nil
		}
	}
	if s.GroupFailed(kind.Group) {
		return nil, fmt.Errorf("find the resource of %s: discovery failed for its API group", kind)
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// find returns the first type of a kind that matches.
func (s *Snapshot) find(kind schema.GroupKind, matches func(Type) bool) (*meta.RESTMapping, bool) {
	i := slices.IndexFunc(s.types, func(t Type) bool {
		return t.Kind == kind.Kind && t.Resource.Group == kind.Group && matches(t)
	})
	if i < 0 {
		return nil, false
	}
	found, scope := s.types[i], meta.RESTScopeRoot
	if found.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{
		Resource: found.Resource, GroupVersionKind: kind.WithVersion(found.Resource.Version), Scope: scope,
	}, true
}
