// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failpoint names the steps at which a test can kill the process.
//
// A step calls Reach with its name. In a regular build that is an empty function, which the compiler removes. In a
// build with the tag failpoints, the environment variable SLIPSTREAM_FAILPOINTS holds a comma-separated list: NAME=kill
// or NAME=kill@N ends the process with SIGKILL when the step NAME is reached for the first or the Nth time. Nothing is
// flushed and no deferred function runs, as with a kill by the kernel or a power failure.
package failpoint
