// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fluxtest runs Flux in clusters of tests: its source-controller and its kustomize-controller.
package fluxtest
