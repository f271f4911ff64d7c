// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// The kinds that grant permissions to ServiceAccounts. They are read and never written: writing them would grant
// permissions.
var (
	Roles               = schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}
	RoleBindings        = schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}
	ClusterRoleBindings = schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}
)

// binding has the common fields of RoleBindings and ClusterRoleBindings.
type binding struct {
	Subjects []rbacv1.Subject `json:"subjects"`
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
}

func bindingOf(object *unstructured.Unstructured) (binding, error) {
	var b binding
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b) != nil {
		return b, fmt.Errorf("read %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
	}
	return b, nil
}

// includes reports whether a ServiceAccount is a subject, directly or through the group of its namespace.
func (b binding) includes(namespace, account string) bool {
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Namespace == namespace && s.Name == account
		case rbacv1.UserKind:
			return s.Name == serviceaccount.MakeUsername(namespace, account)
		case rbacv1.GroupKind:
			return s.Name == serviceaccount.MakeNamespaceGroupName(namespace)
		}
		return false
	})
}

// Binds reports whether a RoleBinding or ClusterRoleBinding has ServiceAccounts of one of the namespaces as subjects.
func Binds(object *unstructured.Unstructured, namespaces ...string) bool {
	b, err := bindingOf(object)
	return err != nil || slices.ContainsFunc(namespaces, func(namespace string) bool {
		return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			of, _, err := serviceaccount.SplitUsername(s.Name)
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace ||
				s.Kind == rbacv1.UserKind && err == nil && of == namespace ||
				s.Kind == rbacv1.GroupKind && s.Name == serviceaccount.MakeNamespaceGroupName(namespace)
		})
	})
}

// permissionCheck compares the permissions that ServiceAccounts have in the source and in the target.
type permissionCheck struct {
	in *Input
	// live holds Input.Live by key.
	live map[Key]*unstructured.Unstructured
	// accounts are the names of the workloads' ServiceAccounts.
	accounts []string
	report   *report
}

// run reports what grants permissions to the ServiceAccounts in the source and not in the target.
func (c permissionCheck) run() error {
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings} {
		granted, err := c.targetBindings(kind)
		if err != nil {
			return err
		}
		for _, object := range sortedByName(ofKind(c.in.Source, kind)) {
			if err := c.checkBinding(object, granted); err != nil {
				return err
			}
		}
	}
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings, Roles} {
		if c.in.Unreadable.Has(kind) {
			c.report.addNotCopied(kind.Kind, "*", v1alpha1.NotCopiedUnreadable)
			c.report.warn(fmt.Sprintf("Which %ss grant rights to ServiceAccounts is not known: the server may not list them", kind.Kind))
		}
	}
	return nil
}

// targetBindings returns the bindings of a kind that are effective in the target.
func (c permissionCheck) targetBindings(kind schema.GroupKind) ([]binding, error) {
	objects := c.in.Live
	if kind == ClusterRoleBindings {
		objects = c.in.Source
	}
	var granted []binding
	for _, object := range ofKind(objects, kind) {
		b, err := bindingOf(object)
		if err != nil {
			return nil, err
		}
		granted = append(granted, b)
	}
	return granted, nil
}

// checkBinding reports a binding of the source if one of the accounts has no equivalent binding in the target, and its Role
// if the target lacks that.
func (c permissionCheck) checkBinding(object *unstructured.Unstructured, granted []binding) error {
	b, err := bindingOf(object)
	if err != nil {
		return err
	}
	bound := slices.DeleteFunc(slices.Clone(c.accounts), func(account string) bool { return !b.includes(c.in.SourceNamespace, account) })
	isLacking := slices.ContainsFunc(bound, func(account string) bool {
		return !slices.ContainsFunc(granted, func(other binding) bool {
			return other.RoleRef == b.RoleRef && other.includes(c.in.Environment.Spec.TargetNamespace, account)
		})
	})
	if key := KeyOf(object); isLacking && !c.in.Unreadable.Has(key.GroupKind) {
		c.reportNotGranted(key, bound)
	}
	role := Key{Roles, b.RoleRef.Name}
	if len(bound) > 0 && b.RoleRef.Kind == Roles.Kind && c.live[role] == nil && !c.in.Unreadable.Has(Roles) {
		c.reportNotGranted(role, bound)
	}
	return nil
}

// reportNotGranted reports that ServiceAccounts lack the permissions that an object grants in the source.
func (c permissionCheck) reportNotGranted(key Key, accounts []string) {
	of := c.report.addNotCopied(key.Kind, key.Name, v1alpha1.NotCopiedGrantsRights)
	of.ServiceAccounts = sets.List(sets.New(of.ServiceAccounts...).Insert(accounts...))
	of.ServiceAccounts = of.ServiceAccounts[:min(len(of.ServiceAccounts), v1alpha1.MaxNotCopied)]
	c.report.warn(fmt.Sprintf("%s is not copied, and %s does not have what it grants: it is about the rights of ServiceAccount %s",
		key, c.in.Environment.Spec.TargetNamespace, summary.List(accounts)))
}

func ofKind(objects []*unstructured.Unstructured, kind schema.GroupKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if KeyOf(object).GroupKind == kind {
			found = append(found, object)
		}
	}
	return found
}
