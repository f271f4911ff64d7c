// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror measures how fast and at what cost the server takes changes of a cluster
// to Git: on a real control plane, with a Git server on the same machine, everything
// sharing its processors. What has a counterpart is measured beside it in the same run, so
// that the ratio means the same on every machine.
package mirror
