// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
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

// reportMissingPermissions records what grants permissions to the workloads' ServiceAccounts in the source and not in the
// target.
func (d *draft) reportMissingPermissions() error {
	accounts := d.serviceAccounts()
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings} {
		granted, err := d.targetBindings(kind)
		if err != nil {
			return err
		}
		for _, object := range sortedByName(ofKind(d.in.Source, kind)) {
			if err := d.checkBinding(object, accounts, granted); err != nil {
				return err
			}
		}
	}
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings, Roles} {
		if d.in.Unreadable.Has(kind) {
			d.addNotCopied(kind.Kind, "*", v1alpha1.NotCopiedUnreadable)
			d.warn(fmt.Sprintf("Which %ss grant rights to ServiceAccounts is not known: the server may not list them", kind.Kind))
		}
	}
	return nil
}

// serviceAccounts returns the names of the workloads' ServiceAccounts.
func (d *draft) serviceAccounts() []string {
	var names []string
	for _, ref := range d.refs {
		if ref.Type == references.ServiceAccount {
			names = append(names, ref.Name)
		}
	}
	return names
}

// targetBindings returns the bindings of a kind that are effective in the target.
func (d *draft) targetBindings(kind schema.GroupKind) ([]binding, error) {
	objects := d.in.Live
	if kind == ClusterRoleBindings {
		objects = d.in.Source
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

// checkBinding records a binding of the source if one of the accounts has no equivalent binding in the target, and its Role
// if the target lacks that.
func (d *draft) checkBinding(object *unstructured.Unstructured, accounts []string, granted []binding) error {
	b, err := bindingOf(object)
	if err != nil {
		return err
	}
	bound := slices.DeleteFunc(slices.Clone(accounts), func(account string) bool { return !b.includes(d.in.SourceNamespace, account) })
	isLacking := slices.ContainsFunc(bound, func(account string) bool {
		return !slices.ContainsFunc(granted, func(other binding) bool {
			return other.RoleRef == b.RoleRef && other.includes(d.in.Environment.Spec.TargetNamespace, account)
		})
	})
	if key := KeyOf(object); isLacking && !d.in.Unreadable.Has(key.GroupKind) {
		d.reportNotGranted(key, bound)
	}
	role := Key{Roles, b.RoleRef.Name}
	if len(bound) > 0 && b.RoleRef.Kind == Roles.Kind && d.live[role] == nil && !d.in.Unreadable.Has(Roles) {
		d.reportNotGranted(role, bound)
	}
	return nil
}

// reportNotGranted records that ServiceAccounts lack the permissions that an object grants in the source.
func (d *draft) reportNotGranted(key Key, accounts []string) {
	of := d.addNotCopied(key.Kind, key.Name, v1alpha1.NotCopiedGrantsRights)
	of.ServiceAccounts = sets.List(sets.New(of.ServiceAccounts...).Insert(accounts...))
	of.ServiceAccounts = of.ServiceAccounts[:min(len(of.ServiceAccounts), v1alpha1.MaxNotCopied)]
	d.warn(fmt.Sprintf("%s is not copied, and %s does not have what it grants: it is about the rights of ServiceAccount %s",
		key, d.in.Environment.Spec.TargetNamespace, summary.List(accounts)))
}

// addNotCopied records an object that the target lacks, once, and returns its entry.
func (d *draft) addNotCopied(kind, name string, reason v1alpha1.NotCopiedReason) *v1alpha1.NotCopiedObject {
	list := &d.plan.NotCopied
	at, found := slices.BinarySearchFunc(*list, v1alpha1.NotCopiedObject{Kind: kind, Name: name}, func(a, b v1alpha1.NotCopiedObject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if !found {
		*list = slices.Insert(*list, at, v1alpha1.NotCopiedObject{Kind: kind, Name: name, Reason: reason})
	}
	return &(*list)[at]
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
