// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package site tests the site of the documentation: it is built while no proxy can be reached, every page is in it and in its menu,
// its links lead somewhere, it loads nothing from other hosts, and its search finds what the pages say, also in a folder without a server.
package site
