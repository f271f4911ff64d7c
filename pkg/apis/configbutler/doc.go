// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configbutler has the internal kinds of the group configbutler.ai. Every version of the API converts to and from
// it. Fields are documented in v1alpha1, which has the same ones.
//
// +k8s:deepcopy-gen=package
// +groupName=configbutler.ai
package configbutler
