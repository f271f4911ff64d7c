// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement answers whether an environment may be where it wants to be, among the catalogs and environments that there
// are.
//
// A namespace is built by one environment, with the Branches that live in it, or followed by catalogs. Of objects that want it for
// something else, the one that was there first has it: admission refuses the others, and of those that get past it, because
// they are created at once at two replicas, all but the oldest find out when they are looked at.
package placement

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Neighbourhood is what there is in a cluster.
type Neighbourhood struct {
	// Own is the namespace of this server; empty: it has none.
	Own string
	// Environments and Catalogs are those of all namespaces.
	Environments []*v1alpha1.Environment
	Catalogs     []*v1alpha1.AppCatalog
	// Labels are those of namespaces.
	Labels accesspolicy.Labels
}

// Obstacle is why an environment may not be where it wants to be.
type Obstacle struct {
	// Reason is one of the reasons of conditions.
	Reason string
	// Field is the one that would have to be another, and Value what it is.
	Field *field.Path
	Value any
	// Message says what the field must be, such as: must not be the source of a catalog: AppCatalog shop/shop follows it.
	Message string
}

// String is a sentence about the field.
func (o Obstacle) String() string { return fmt.Sprintf("%s %s", o.Field, o.Message) }

var specPath = field.NewPath("spec")

// Judge returns why e may not be where it wants to be, what is worst first; nothing when it may. An environment without a
// creationTimestamp comes after everything that is there. That its catalog does not exist is no obstacle here.
func (n *Neighbourhood) Judge(e *v1alpha1.Environment) []Obstacle {
	var found []Obstacle
	for _, judge := range []func(*v1alpha1.Environment) []Obstacle{n.aboutServer, n.aboutSources, n.aboutTargets, n.aboutBase, n.aboutBranches, n.aboutAccess} {
		found = append(found, judge(e)...)
	}
	return found
}

// target is an obstacle about the target of e.
func target(e *v1alpha1.Environment, reason, message string, args ...any) []Obstacle {
	return []Obstacle{{
		Reason: reason, Field: specPath.Child("targetNamespace"), Value: e.Spec.TargetNamespace, Message: fmt.Sprintf(message, args...),
	}}
}

func (n *Neighbourhood) aboutServer(e *v1alpha1.Environment) []Obstacle {
	if n.Own == "" || e.Spec.TargetNamespace != n.Own {
		return nil
	}
	return target(e, v1alpha1.ReasonTargetTaken, "must not be the namespace of this server: what keeps it going is there")
}

// aboutSources keeps environments out of what catalogs follow: they would write into production, and catalogs would take it for a
// change of production.
func (n *Neighbourhood) aboutSources(e *v1alpha1.Environment) []Obstacle {
	for _, catalog := range n.Catalogs {
		if catalog.Spec.SourceNamespace == e.Spec.TargetNamespace && precedes(catalog, e) {
			return target(e, v1alpha1.ReasonTargetIsSource, "must not be the source of a catalog: AppCatalog %s/%s follows it", catalog.Namespace, catalog.Name)
		}
	}
	return nil
}

// aboutTargets keeps two environments from taking each other's objects away.
func (n *Neighbourhood) aboutTargets(e *v1alpha1.Environment) []Obstacle {
	for _, other := range n.Environments {
		if other.Spec.TargetNamespace != e.Spec.TargetNamespace || isSame(other, e) || liveTogether(other, e) || !precedes(other, e) {
			continue
		}
		message := "must not be the target of another environment: Environment %s/%s has it"
		if other.DeletionTimestamp != nil {
			message += " until it has been deleted"
		}
		return target(e, v1alpha1.ReasonTargetTaken, message, other.Namespace, other.Name)
	}
	return nil
}

// aboutBase says why a Branch cannot live in its base.
func (n *Neighbourhood) aboutBase(e *v1alpha1.Environment) []Obstacle {
	if e.Spec.BaseEnvironmentRef == nil {
		return nil
	}
	name := e.Spec.BaseEnvironmentRef.Name
	obstacle := func(path *field.Path, value any, message string, args ...any) []Obstacle {
		return []Obstacle{{Reason: v1alpha1.ReasonBaseNotFound, Field: path, Value: value, Message: fmt.Sprintf(message, args...)}}
	}
	base, path := n.called(e.Namespace, name), specPath.Child("baseEnvironmentRef", "name")
	switch {
	case base == nil:
		return obstacle(path, name, "must be an Environment in the namespace %s: there is none of the name", e.Namespace)
	case base.DeletionTimestamp != nil:
		return obstacle(path, name, "must be an Environment that stays: %s is being deleted", name)
	case base.Spec.Type == v1alpha1.EnvironmentBranch:
		return obstacle(path, name, "must be an Environment of the type Shared: %s is a Branch", name)
	case catalogOf(base) != catalogOf(e):
		return obstacle(specPath.Child("catalogRef"), catalogOf(e), "must be that of the base: Environment %s is built from AppCatalog %s", name, catalogOf(base))
	case base.Spec.TargetNamespace != e.Spec.TargetNamespace:
		return obstacle(specPath.Child("targetNamespace"), e.Spec.TargetNamespace, "must be that of the base: Environment %s is in %s",
			name, base.Spec.TargetNamespace)
	}
	return nil
}

// aboutBranches keeps two Branches that live in one base from having the same workload.
func (n *Neighbourhood) aboutBranches(e *v1alpha1.Environment) []Obstacle {
	var found []Obstacle
	for i, workload := range e.Spec.BranchWorkloads {
		if other := n.holderOf(workload, e); other != nil {
			found = append(found, Obstacle{
				Reason: v1alpha1.ReasonTargetTaken, Field: specPath.Child("branchWorkloads").Index(i),
				Value:   fmt.Sprintf("%s %s", workload.Kind, workload.Name),
				Message: fmt.Sprintf("must not be in another Branch of the same base: Environment %s has it", other.Name),
			})
		}
	}
	return found
}

// holderOf is the other Branch of the base of e that has a workload, nil if there is none that was there before.
func (n *Neighbourhood) holderOf(workload v1alpha1.WorkloadReference, e *v1alpha1.Environment) *v1alpha1.Environment {
	for _, other := range n.Environments {
		if isSame(other, e) || !liveTogether(other, e) || !precedes(other, e) {
			continue
		}
		for _, theirs := range other.Spec.BranchWorkloads {
			if theirs == workload {
				return other
			}
		}
	}
	return nil
}

// aboutAccess asks the catalog, if it is there.
func (n *Neighbourhood) aboutAccess(e *v1alpha1.Environment) []Obstacle {
	for _, catalog := range n.Catalogs {
		if nameOf(catalog) != catalogOf(e) || accesspolicy.AdmitsToCatalog(catalog.Spec.AccessPolicy, catalog.Namespace, e.Namespace, n.Labels) {
			continue
		}
		return []Obstacle{{
			Reason: v1alpha1.ReasonAccessNotGranted, Field: specPath.Child("catalogRef"), Value: catalogOf(e),
			Message: fmt.Sprintf("must be a catalog that admits Environments of the namespace %s: AppCatalog %s does not; its spec.accessPolicy can",
				e.Namespace, catalogOf(e)),
		}}
	}
	return nil
}

// Builder is the environment that builds a namespace and was there before each catalog that wants to follow it, nil if there
// is none.
func (n *Neighbourhood) Builder(namespace string) *v1alpha1.Environment {
	var first *v1alpha1.Environment
	for _, e := range n.Environments {
		if e.Spec.TargetNamespace == namespace && (first == nil || precedes(e, first)) {
			first = e
		}
	}
	for _, catalog := range n.Catalogs {
		if first != nil && catalog.Spec.SourceNamespace == namespace && precedes(catalog, first) {
			return nil
		}
	}
	return first
}

func (n *Neighbourhood) called(namespace, name string) *v1alpha1.Environment {
	for _, e := range n.Environments {
		if e.Namespace == namespace && e.Name == name {
			return e
		}
	}
	return nil
}

// precedes says whether an object was there before another. Times are of seconds: of two of the same second, catalogs come
// first, so that nothing is written where they are followed, and the rest is a matter of their uids.
func precedes(a, b metav1.Object) bool {
	at, than := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.IsZero() || than.IsZero() {
		return !at.IsZero()
	}
	return cmp.Or(at.Compare(than.Time), rank(a)-rank(b), cmp.Compare(a.GetUID(), b.GetUID())) < 0
}

func rank(object metav1.Object) int {
	if _, ok := object.(*v1alpha1.AppCatalog); ok {
		return 0
	}
	return 1
}

func isSame(a, b *v1alpha1.Environment) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// liveTogether says whether two environments are a base and its Branch, or two Branches of one base.
func liveTogether(a, b *v1alpha1.Environment) bool {
	return a.Namespace == b.Namespace && home(a) == home(b)
}

// home is the name of the environment that one lives in, which may be itself.
func home(e *v1alpha1.Environment) string {
	if e.Spec.BaseEnvironmentRef != nil {
		return e.Spec.BaseEnvironmentRef.Name
	}
	return e.Name
}

// catalogOf names the catalog of an environment, however it is written.
func catalogOf(e *v1alpha1.Environment) string {
	return cmp.Or(e.Spec.CatalogRef.Namespace, e.Namespace) + "/" + e.Spec.CatalogRef.Name
}

func nameOf(catalog *v1alpha1.AppCatalog) string { return catalog.Namespace + "/" + catalog.Name }
