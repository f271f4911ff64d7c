// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configbutler holds the kinds of the group configbutler.ai in the form that the server works with. Every
// version of the API converts to and from it. Fields are explained in v1alpha1, which has the same ones.
//
// +k8s:deepcopy-gen=package
// +groupName=configbutler.ai
package configbutler
