// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs measures how soon catalogs record what changes in their source, and what that takes when everything
// changes all the time.
package catalogs
