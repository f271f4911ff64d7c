// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the API server: one API group on the generic API server of k8s.io/apiserver, with the
// controllers beside it.
package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
)

// NewScheme returns a scheme with all served kinds and the common kinds of any API server.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	// Options such as ListOptions and responses such as Status have no group. They are encoded as v1.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
	return scheme
}

// NewCodecs returns the codecs for the kinds of scheme.
func NewCodecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme)
}
