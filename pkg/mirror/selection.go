// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// namespaceLookup returns the namespace with the name, or false if it does not exist.
type namespaceLookup func(name string) (watch.Namespace, bool)

// selector is one item of a rule, resolved to types that the cluster serves.
type selector struct {
	types map[schema.GroupVersionResource]watch.Type
	// namespace limits the selector to one namespace; empty selects all namespaces and the cluster scope.
	namespace string
	// namespaces selects namespaces by label; nil selects all.
	namespaces labels.Selector
	objects    labels.Selector
	operations operations
}

// covers reports whether the selector can select objects of t in the namespace.
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

// fingerprint returns a text that is equal for selectors that select the same.
func (s *selector) fingerprint() string {
	namespaces := ""
	if s.namespaces != nil {
		namespaces = "namespaces " + s.namespaces.String()
	}
	return fmt.Sprintf("%s|%s|%s|%d", s.namespace, namespaces, s.objects, s.operations)
}

// selection has the selectors of all rules of one destination.
type selection []selector

// operations returns the operations that the rules allow for the file of an object; none if no rule selects it.
func (s selection) operations(t schema.GroupVersionResource, namespace string, object labels.Set, of namespaceLookup) operations {
	var ops operations
	for i := range s {
		if s[i].covers(t, namespace, of) && s[i].objects.Matches(object) {
			ops |= s[i].operations
		}
	}
	return ops
}

// removable reports whether the file of an object that is deleted or no longer selected can be removed: a rule that covers
// its type and namespace includes DELETE, or no rule covers them any more.
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

// types returns the selected types, in a stable order.
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

// watches returns the list-watches that t needs: one for all namespaces if any rule needs that, otherwise one for each
// namespace.
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

// fingerprint returns a text that changes when the selection of t changes.
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

// movedBy reports whether a change of a namespace adds objects of t to the selection or removes them.
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

// annotated reports whether the annotation of a namespace excludes it from mirrors.
func annotated(namespace *watch.Namespace) bool {
	return namespace != nil && namespace.Annotations[v1alpha1.AnnotationMirror] == "false"
}

// compareResources compares types in the order in which they are listed everywhere.
func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Version, b.Version))
}

// selectorOrAll returns a selector; nil selects everything.
func selectorOrAll(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// operationsOf returns the set of the named operations; none means all.
func operationsOf(named []v1alpha1.Operation) operations {
	if len(named) == 0 {
		return opAll
	}
	var ops operations
	for _, name := range named {
		switch name {
		case v1alpha1.OperationCreate:
			ops |= opCreate
		case v1alpha1.OperationUpdate:
			ops |= opUpdate
		case v1alpha1.OperationDelete:
			ops |= opDelete
		case v1alpha1.OperationAll:
			ops |= opAll
		}
	}
	return ops
}
