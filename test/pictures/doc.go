// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pictures takes the pictures of the documentation: the page of kubectl slipstream dashboard, with a small shop.
package pictures
