// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// operations is a set of Operation.
type operations uint8

const (
	opCreate operations = 1 << iota
	opUpdate
	opDelete

	opAll = opCreate | opUpdate | opDelete
)

func (o operations) has(op operations) bool { return o&op == op }

// namespaceLookup returns a namespace, false when there is none of that name.
type namespaceLookup func(name string) (watch.Namespace, bool)

// selector is one item of a rule, resolved to the types that the cluster serves now.
type selector struct {
	types map[schema.GroupVersionResource]watch.Type
	// namespace limits the selector to one; empty: every namespace, and cluster scope.
	namespace string
	// namespaces selects namespaces by label; nil: all.
	namespaces labels.Selector
	objects    labels.Selector
	operations operations
}

// covers says whether objects of t in namespace can be selected at all.
func (s *selector) covers(t schema.GroupVersionResource, namespace string, of namespaceLookup) bool {
	if _, ok := s.types[t]; !ok {
		return false
	}
	if s.namespace != "" && s.namespace != namespace {
		return false
	}
	if s.namespaces == nil {
		return true
	}
	found, ok := of(namespace)
	return ok && s.namespaces.Matches(found.Labels)
}

// fingerprint is equal for selectors that select the same.
func (s *selector) fingerprint() string {
	namespaces := ""
	if s.namespaces != nil {
		namespaces = "namespaces " + s.namespaces.String()
	}
	return fmt.Sprintf("%s|%s|%s|%d", s.namespace, namespaces, s.objects, s.operations)
}

// selection is all that the rules of one destination select.
type selection []selector

// operations returns what the rules let happen to the file of an object: none when no
// rule selects it.
func (s selection) operations(t schema.GroupVersionResource, namespace string, object labels.Set, of namespaceLookup) operations {
	var ops operations
	for i := range s {
		if s[i].covers(t, namespace, of) && s[i].objects.Matches(object) {
			ops |= s[i].operations
		}
	}
	return ops
}

// removable says whether the file of an object that is gone, or selected no more, may be
// removed: when a rule that covers its type and namespace removes files, or when no rule
// covers them any more.
func (s selection) removable(t schema.GroupVersionResource, namespace string, of namespaceLookup) bool {
	covered := false
	for i := range s {
		if !s[i].covers(t, namespace, of) {
			continue
		}
		if s[i].operations.has(opDelete) {
			return true
		}
		covered = true
	}
	return !covered
}

// types returns the types selected, in a stable order.
func (s selection) types() []watch.Type {
	byResource := map[schema.GroupVersionResource]watch.Type{}
	for i := range s {
		for gvr, t := range s[i].types {
			byResource[gvr] = t
		}
	}
	types := make([]watch.Type, 0, len(byResource))
	for _, t := range byResource {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b watch.Type) int { return compareResources(a.Resource, b.Resource) })
	return types
}

// watches returns the list-watches that t needs: one for all namespaces if any rule needs
// that, else one for each namespace.
func (s selection) watches(t schema.GroupVersionResource) []watch.Watch {
	var watches []watch.Watch
	for i := range s {
		if _, ok := s[i].types[t]; !ok {
			continue
		}
		w := watch.Watch{Resource: t, Namespace: s[i].namespace}
		if w.Namespace == "" {
			return []watch.Watch{w}
		}
		if !slices.Contains(watches, w) {
			watches = append(watches, w)
		}
	}
	slices.SortFunc(watches, func(a, b watch.Watch) int { return strings.Compare(a.Namespace, b.Namespace) })
	return watches
}

// fingerprint changes when what is selected of t changes.
func (s selection) fingerprint(t schema.GroupVersionResource) string {
	var parts []string
	for i := range s {
		if _, ok := s[i].types[t]; ok {
			parts = append(parts, s[i].fingerprint())
		}
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
}

// movedBy says whether a change of a namespace takes objects of t in or out.
func (s selection) movedBy(t schema.GroupVersionResource, change watch.NamespaceChange) bool {
	name := ""
	for _, namespace := range []*watch.Namespace{change.Before, change.After} {
		if namespace != nil {
			name = namespace.Name
		}
	}
	return slices.ContainsFunc(s, func(sel selector) bool {
		if _, ok := sel.types[t]; !ok || sel.namespace != "" && sel.namespace != name {
			return false
		}
		if annotated(change.Before) != annotated(change.After) {
			return true
		}
		return sel.namespaces != nil && matches(sel.namespaces, change.Before) != matches(sel.namespaces, change.After)
	})
}

func matches(selector labels.Selector, namespace *watch.Namespace) bool {
	return namespace != nil && selector.Matches(namespace.Labels)
}

// annotated says whether a namespace asks to be left out.
func annotated(namespace *watch.Namespace) bool {
	return namespace != nil && namespace.Annotations[v1alpha1.AnnotationMirror] == "false"
}

// compareResources is the order in which types are listed everywhere.
func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Version, b.Version))
}
