// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution answers with which files a cluster is made to tell who changes it. People apply them as they are;
// programs read them here.
package attribution

import "embed"

// Files are the files of this folder, by name. What differs from cluster to cluster is a ${VARIABLE} in them, and the
// folder /etc/kubernetes/slipstream.
//
//go:embed *.yaml
var Files embed.FS
