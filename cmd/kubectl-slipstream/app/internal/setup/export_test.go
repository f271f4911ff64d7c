// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

var VersionsFit = versionsFit
