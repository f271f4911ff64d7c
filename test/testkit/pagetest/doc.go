// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagetest starts kubectl slipstream dashboard and runs scenarios on its page in Chromium, which are in test/page/browser.
package pagetest
