// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of the group configbutler.ai with a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Install adds the internal kinds and every version of them to the scheme. It panics if a kind is already registered with
// another Go type, which is a programming error.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(configbutler.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
}
