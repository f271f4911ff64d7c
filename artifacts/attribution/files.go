// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution contains the files that configure a cluster to report the authors of changes. Users apply the files,
// and programs read them from here.
package attribution

import "embed"

// Files are the files of this folder, by name. Values that differ between clusters are variables such as ${ADDRESS}, and
// the folder /etc/kubernetes/slipstream.
//
//go:embed *.yaml
var Files embed.FS
