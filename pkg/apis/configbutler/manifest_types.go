// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestOptions are the query parameters of the subresource objects of a GitDestination.
type ManifestOptions struct {
	metav1.TypeMeta
	At            string
	Resource      string
	Namespace     string
	Name          string
	LabelSelector string
	Limit         int64
	Continue      string
	Secrets       string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestList has objects as they were in Git at some time. It is read at the subresource objects of a GitDestination. kubectl apply
// accepts it.
type ManifestList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Commit     *ManifestCommit
	Omitted    int32
	Unreadable []string
	Ignore     []IgnoreRule
	Items      []runtime.RawExtension
}

// ManifestCommit is the commit that objects were read from.
type ManifestCommit struct {
	SHA  string
	Time metav1.Time
}
