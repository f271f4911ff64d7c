// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement checks whether an environment conflicts with other environments and catalogs of the cluster.
//
// A namespace is either the target of one environment and the Branches in it, or the source of catalogs. The object that
// was created first has it. Admission rejects later ones. Objects created concurrently at two replicas can pass admission;
// then the controllers reject all but the oldest.
package placement

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Cluster is the state that checks depend on.
type Cluster struct {
	// Own is the namespace of this server. It is optional.
	Own string
	// Environments and Catalogs are those of all namespaces.
	Environments []*v1alpha1.Environment
	Catalogs     []*v1alpha1.AppCatalog
	// Labels are the labels of namespaces.
	Labels accesspolicy.Labels
}

// Conflict is the reason why an environment is not allowed as it is.
type Conflict struct {
	// Reason is a condition reason.
	Reason string
	// Field is the field to change, and Value its value.
	Field *field.Path
	Value any
	// Message is a requirement for the field, such as: must not be the source of a catalog: AppCatalog shop/shop follows
	// it.
	Message string
}

// String returns the field and the message.
func (c Conflict) String() string { return fmt.Sprintf("%s %s", c.Field, c.Message) }

var specPath = field.NewPath("spec")

// Check returns the conflicts of e, the most severe first. An environment without a creationTimestamp is newer than all
// others. A missing catalog is no conflict here.
func (c *Cluster) Check(e *v1alpha1.Environment) []Conflict {
	var found []Conflict
	for _, judge := range []func(*v1alpha1.Environment) []Conflict{
		c.checkServer, c.checkSources, c.checkTargets, c.checkBase, c.checkBranches, c.checkAccess,
	} {
		found = append(found, judge(e)...)
	}
	return found
}

// targetConflict returns a conflict about the target of e.
func targetConflict(e *v1alpha1.Environment, reason, message string, args ...any) []Conflict {
	return []Conflict{{
		Reason: reason, Field: specPath.Child("targetNamespace"), Value: e.Spec.TargetNamespace, Message: fmt.Sprintf(message, args...),
	}}
}

func (c *Cluster) checkServer(e *v1alpha1.Environment) []Conflict {
	if c.Own == "" || e.Spec.TargetNamespace != c.Own {
		return nil
	}
	return targetConflict(e, v1alpha1.ReasonTargetTaken, "must not be the namespace of this server")
}

// checkSources rejects targets that catalogs follow: the environment would write to production, and the catalogs would take
// that for a change of production.
func (c *Cluster) checkSources(e *v1alpha1.Environment) []Conflict {
	for _, catalog := range c.Catalogs {
		if catalog.Spec.SourceNamespace == e.Spec.TargetNamespace && precedes(catalog, e) {
			return targetConflict(e, v1alpha1.ReasonTargetIsSource, "must not be the source of a catalog: AppCatalog %s/%s follows it",
				catalog.Namespace, catalog.Name)
		}
	}
	return nil
}

// checkTargets rejects targets of other environments, which would delete each other's objects.
func (c *Cluster) checkTargets(e *v1alpha1.Environment) []Conflict {
	for _, other := range c.Environments {
		if other.Spec.TargetNamespace != e.Spec.TargetNamespace || isSame(other, e) || shareTarget(other, e) || !precedes(other, e) {
			continue
		}
		message := "must not be the target of another environment: Environment %s/%s has it"
		if other.DeletionTimestamp != nil {
			message += " until it has been deleted"
		}
		return targetConflict(e, v1alpha1.ReasonTargetTaken, message, other.Namespace, other.Name)
	}
	return nil
}

// checkBase checks the base of a Branch.
func (c *Cluster) checkBase(e *v1alpha1.Environment) []Conflict {
	if e.Spec.BaseEnvironmentRef == nil {
		return nil
	}
	name := e.Spec.BaseEnvironmentRef.Name
	obstacle := func(path *field.Path, value any, message string, args ...any) []Conflict {
		return []Conflict{{Reason: v1alpha1.ReasonBaseNotFound, Field: path, Value: value, Message: fmt.Sprintf(message, args...)}}
	}
	base, path := c.find(e.Namespace, name), specPath.Child("baseEnvironmentRef", "name")
	switch {
	case base == nil:
		return obstacle(path, name, "must be an Environment in the namespace %s: there is none of the name", e.Namespace)
	case base.DeletionTimestamp != nil:
		return obstacle(path, name, "must be an Environment that stays: %s is being deleted", name)
	case base.Spec.Type == v1alpha1.EnvironmentBranch:
		return obstacle(path, name, "must be an Environment of the type Shared: %s is a Branch", name)
	case catalogOf(base) != catalogOf(e):
		return obstacle(specPath.Child("catalogRef"), catalogOf(e), "must be that of the base: Environment %s is built from AppCatalog %s", name,
			catalogOf(base))
	case base.Spec.TargetNamespace != e.Spec.TargetNamespace:
		return obstacle(specPath.Child("targetNamespace"), e.Spec.TargetNamespace, "must be that of the base: Environment %s is in %s",
			name, base.Spec.TargetNamespace)
	}
	return nil
}

// checkBranches rejects workloads that another Branch of the same base holds.
func (c *Cluster) checkBranches(e *v1alpha1.Environment) []Conflict {
	var found []Conflict
	for i, workload := range e.Spec.BranchWorkloads {
		if other := c.holderOf(workload, e); other != nil {
			found = append(found, Conflict{
				Reason: v1alpha1.ReasonTargetTaken, Field: specPath.Child("branchWorkloads").Index(i),
				Value:   fmt.Sprintf("%s %s", workload.Kind, workload.Name),
				Message: fmt.Sprintf("must not be in another Branch of the same base: Environment %s has it", other.Name),
			})
		}
	}
	return found
}

// holderOf returns the older Branch of the same base that holds a workload, nil if there is none.
func (c *Cluster) holderOf(workload v1alpha1.WorkloadReference, e *v1alpha1.Environment) *v1alpha1.Environment {
	for _, other := range c.Environments {
		if isSame(other, e) || !shareTarget(other, e) || !precedes(other, e) {
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

// checkAccess checks the access policy of the catalog, if the catalog exists.
func (c *Cluster) checkAccess(e *v1alpha1.Environment) []Conflict {
	for _, catalog := range c.Catalogs {
		if nameOf(catalog) != catalogOf(e) || accesspolicy.AdmitsToCatalog(catalog.Spec.AccessPolicy, catalog.Namespace, e.Namespace, c.Labels) {
			continue
		}
		return []Conflict{{
			Reason: v1alpha1.ReasonAccessNotGranted, Field: specPath.Child("catalogRef"), Value: catalogOf(e),
			Message: fmt.Sprintf("must be a catalog that admits Environments of the namespace %s: AppCatalog %s does not; its spec.accessPolicy can",
				e.Namespace, catalogOf(e)),
		}}
	}
	return nil
}

// Builder returns the oldest environment with a target, nil if there is none or a catalog that follows the namespace is
// older.
func (c *Cluster) Builder(namespace string) *v1alpha1.Environment {
	var first *v1alpha1.Environment
	for _, e := range c.Environments {
		if e.Spec.TargetNamespace == namespace && (first == nil || precedes(e, first)) {
			first = e
		}
	}
	for _, catalog := range c.Catalogs {
		if first != nil && catalog.Spec.SourceNamespace == namespace && precedes(catalog, first) {
			return nil
		}
	}
	return first
}

func (c *Cluster) find(namespace, name string) *v1alpha1.Environment {
	for _, e := range c.Environments {
		if e.Namespace == namespace && e.Name == name {
			return e
		}
	}
	return nil
}

// precedes reports whether an object is older than another one. Timestamps have seconds; within the same second, catalogs
// are older, so that nothing is written to their sources, and otherwise the UIDs decide.
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

// shareTarget reports whether two environments are a base and its Branch, or two Branches of one base.
func shareTarget(a, b *v1alpha1.Environment) bool {
	return a.Namespace == b.Namespace && baseName(a) == baseName(b)
}

// baseName returns the name of the base, or of the environment itself if it has none.
func baseName(e *v1alpha1.Environment) string {
	if e.Spec.BaseEnvironmentRef != nil {
		return e.Spec.BaseEnvironmentRef.Name
	}
	return e.Name
}

// catalogOf returns the namespace and name of an environment's catalog.
func catalogOf(e *v1alpha1.Environment) string {
	return e.Spec.CatalogRef.NamespacedName(e.Namespace).String()
}

func nameOf(catalog *v1alpha1.AppCatalog) string { return catalog.Namespace + "/" + catalog.Name }
