// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install shows what comes of installing, changing, upgrading and removing the server with the chart: by real helm
// and kubectl on a real control plane, in Pods that run as the chart says.
package install
