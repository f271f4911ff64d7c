// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failpoint names the steps at which a test may kill the process.
//
// A step calls Reach with its name. In an ordinary build that is an empty function which the compiler removes. In a
// build with the tag failpoints the environment variable SLIPSTREAM_FAILPOINTS decides: a comma-separated list of
// NAME=kill or NAME=kill@N ends the process with SIGKILL when the step NAME is reached for the first or the Nth time.
// Nothing is flushed and no deferred function runs, exactly as when the kernel or a power cut ends it.
package failpoint
