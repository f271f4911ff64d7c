// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page tests the page of kubectl slipstream dashboard: in Chromium, as users use it, and over HTTP, as an attacker would. The
// scenarios are in the folder browser.
package page
