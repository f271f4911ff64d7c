// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// identity are the labels of what an environment writes, by which it knows its own.
func identity(e *v1alpha1.Environment) map[string]string {
	return map[string]string{
		v1alpha1.LabelEnvironment: e.Name, v1alpha1.LabelEnvironmentNamespace: e.Namespace, v1alpha1.LabelEnvironmentUID: string(e.UID),
	}
}

// labels are all that are set on what an environment writes.
func (s *Situation) labels() map[string]string {
	labels := identity(s.Environment)
	labels[v1alpha1.LabelCatalog] = s.Environment.Spec.CatalogRef.Name
	labels[v1alpha1.LabelRevision] = strconv.FormatInt(s.Revision, 10)
	return labels
}

// Writer is an environment as what it has written says.
type Writer struct {
	types.NamespacedName
	UID types.UID
}

// WriterOf returns the environment that has written an object, false if none has. What a controller makes may have the labels of what
// it makes it of; what is made for a Gateway names it as an owner and, by Istio, not as a controller.
func WriterOf(object metav1.Object) (Writer, bool) {
	labels := object.GetLabels()
	writer := Writer{
		NamespacedName: types.NamespacedName{Namespace: labels[v1alpha1.LabelEnvironmentNamespace], Name: labels[v1alpha1.LabelEnvironment]},
		UID:            types.UID(labels[v1alpha1.LabelEnvironmentUID]),
	}
	isWhole := writer.Namespace != "" && writer.Name != "" && writer.UID != ""
	isMade := slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return ptr.Deref(owner.Controller, false) || strings.HasPrefix(owner.APIVersion, gatewayv1.GroupName+"/")
	})
	return writer, isWhole && !isMade
}

// Owns says whether an environment has written an object.
func Owns(e *v1alpha1.Environment, object metav1.Object) bool {
	writer, ok := WriterOf(object)
	return ok && writer == Writer{types.NamespacedName{Namespace: e.Namespace, Name: e.Name}, e.UID}
}

// Written selects what an environment has written, and what controllers make of it.
func Written(e *v1alpha1.Environment) labels.Selector { return labels.SelectorFromSet(identity(e)) }

// Namespace is what is applied where the target does not exist, nil if it is not to be created.
func Namespace(e *v1alpha1.Environment) *unstructured.Unstructured {
	if !e.Spec.CreateNamespace {
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(e.Spec.TargetNamespace)
	namespace.SetLabels(identity(e))
	return namespace
}

// owner is who has written a live object.
type owner int

const (
	// ours are written by the environment.
	ours owner = iota
	// free are written by nobody whom that would concern: by the base that a Branch takes a workload out of, or by the
	// cluster, which makes an account in each namespace.
	free
	// relatives are written by another environment in the same target.
	relatives
	others
)

func (s *Situation) ownerOf(live *unstructured.Unstructured) owner {
	if Owns(s.Environment, live) {
		return ours
	}
	for _, relative := range s.Family {
		if !Owns(relative, live) {
			continue
		}
		if s.isBase(relative) && KeyOf(live).isWorkload() {
			return free
		}
		return relatives
	}
	if isUntouchedAccount(live) {
		return free
	}
	return others
}

// isUntouchedAccount says whether an object is the account that the cluster makes, as it makes it.
func isUntouchedAccount(live *unstructured.Unstructured) bool {
	_, hasSecrets := live.Object["imagePullSecrets"]
	return live.GroupVersionKind().GroupKind() == account.GroupKind && live.GetName() == account.Name &&
		!hasSecrets && live.GetLabels()[v1alpha1.LabelEnvironment] == ""
}

var (
	// account is the one that the cluster makes in each namespace.
	account = Key{schema.GroupKind{Kind: "ServiceAccount"}, "default"}
	secrets = schema.GroupKind{Kind: "Secret"}
)

func (s *Situation) isBranch() bool { return s.Environment.Spec.Type == v1alpha1.EnvironmentBranch }

// isBase says whether the environment is a Branch of another one.
func (s *Situation) isBase(other *v1alpha1.Environment) bool {
	base := s.Environment.Spec.BaseEnvironmentRef
	return s.isBranch() && base != nil && base.Name == other.Name && s.Environment.Namespace == other.Namespace
}

// isBranchedOff says whether a Branch of the environment has taken a workload out of it.
func (s *Situation) isBranchedOff(key Key) bool {
	for _, relative := range s.Family {
		base := relative.Spec.BaseEnvironmentRef
		if base == nil || base.Name != s.Environment.Name || relative.Namespace != s.Environment.Namespace || relative.DeletionTimestamp != nil {
			continue
		}
		for _, workload := range relative.Spec.BranchWorkloads {
			if key.isWorkload() && key.workload() == workload {
				return true
			}
		}
	}
	return false
}
