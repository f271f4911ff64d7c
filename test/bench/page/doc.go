// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page measures the page of kubectl slipstream dashboard in Chromium, with many environments and Changes.
package page
