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

// The kinds by which ServiceAccounts have rights. They are read and never written: who may write them may grant rights.
var (
	Roles               = schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}
	RoleBindings        = schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}
	ClusterRoleBindings = schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}
)

// binding is what RoleBindings and ClusterRoleBindings have in common.
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

// includes says whether a ServiceAccount of a namespace is among the subjects, by itself or as one of all accounts there.
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

// Binds says whether a RoleBinding or ClusterRoleBinding is about ServiceAccounts of one of the namespaces.
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

// lacking takes down what grants rights to the ServiceAccounts of workloads in the source, and not in the target.
func (d *draft) lacking() error {
	accounts := d.accounts()
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings} {
		granted, err := d.granted(kind)
		if err != nil {
			return err
		}
		for _, object := range inNameOrder(ofKind(d.Source, kind)) {
			if err := d.lackingBinding(object, accounts, granted); err != nil {
				return err
			}
		}
	}
	for _, kind := range []schema.GroupKind{ClusterRoleBindings, RoleBindings, Roles} {
		if d.Unreadable.Has(kind) {
			d.notCopied(kind.Kind, "*", v1alpha1.NotCopiedUnreadable)
			d.report(fmt.Sprintf("Which %ss grant rights to ServiceAccounts is not known: the server may not list them", kind.Kind))
		}
	}
	return nil
}

// accounts are the ServiceAccounts of the workloads.
func (d *draft) accounts() []string {
	var names []string
	for _, ref := range d.found {
		if ref.Type == references.ServiceAccount {
			names = append(names, ref.Name)
		}
	}
	return names
}

// granted are the bindings of a kind that count in the target.
func (d *draft) granted(kind schema.GroupKind) ([]binding, error) {
	objects := d.Live
	if kind == ClusterRoleBindings {
		objects = d.Source
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

// lackingBinding takes a binding of the source down if it grants rights to accounts that do not have them in the target, and its Role,
// if the target does not have that.
func (d *draft) lackingBinding(object *unstructured.Unstructured, accounts []string, granted []binding) error {
	b, err := bindingOf(object)
	if err != nil {
		return err
	}
	bound := slices.DeleteFunc(slices.Clone(accounts), func(account string) bool { return !b.includes(d.SourceNamespace, account) })
	isLacking := slices.ContainsFunc(bound, func(account string) bool {
		return !slices.ContainsFunc(granted, func(other binding) bool {
			return other.RoleRef == b.RoleRef && other.includes(d.Environment.Spec.TargetNamespace, account)
		})
	})
	if key := KeyOf(object); isLacking && !d.Unreadable.Has(key.GroupKind) {
		d.notGranted(key, bound)
	}
	role := Key{Roles, b.RoleRef.Name}
	if len(bound) > 0 && b.RoleRef.Kind == Roles.Kind && d.live[role] == nil && !d.Unreadable.Has(Roles) {
		d.notGranted(role, bound)
	}
	return nil
}

// notGranted takes down that ServiceAccounts do not have the rights that an object grants them.
func (d *draft) notGranted(key Key, accounts []string) {
	of := d.notCopied(key.Kind, key.Name, v1alpha1.NotCopiedGrantsRights)
	of.ServiceAccounts = sets.List(sets.New(of.ServiceAccounts...).Insert(accounts...))
	of.ServiceAccounts = of.ServiceAccounts[:min(len(of.ServiceAccounts), v1alpha1.MaxNotCopied)]
	d.report(fmt.Sprintf("%s is not copied, and %s does not have what it grants: it is about the rights of ServiceAccount %s",
		key, d.Environment.Spec.TargetNamespace, summary.List(accounts)))
}

// notCopied takes an object down that the target lacks, once, and returns the entry.
func (d *draft) notCopied(kind, name string, reason v1alpha1.NotCopiedReason) *v1alpha1.NotCopiedObject {
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
