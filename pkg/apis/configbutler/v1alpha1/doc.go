// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the group configbutler.ai as users write
// and read them.
//
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/configbutler/slipstream/pkg/apis/configbutler
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.configbutler.slipstream.pkg.apis.configbutler.v1alpha1
// +groupName=configbutler.ai
package v1alpha1
