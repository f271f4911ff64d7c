// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests installing, changing, upgrading and uninstalling the server with the chart: with helm and kubectl on a real
// control plane, in Pods with the chart's specification.
package install
