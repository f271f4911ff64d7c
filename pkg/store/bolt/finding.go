// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
)

// Finding is one problem of a store file.
type Finding struct {
	// File is the file's path. Bucket is empty for a problem of the whole file, Key for a problem of a whole bucket.
	File, Bucket, Key string
	// Problem describes the actual and the expected content.
	Problem string
}

// String returns the finding in one line, with the key quoted.
func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.File, f.problem()) }

// problem returns the finding without the file.
func (f Finding) problem() string {
	switch {
	case f.Bucket == "":
		return f.Problem
	case f.Key == "":
		return fmt.Sprintf("%s: %s", f.Bucket, f.Problem)
	default:
		return fmt.Sprintf("%s %q: %s", f.Bucket, f.Key, f.Problem)
	}
}

// Verification receives the results of [Verify]. Its functions are called from one goroutine at a time.
type Verification struct {
	// Found is called with each problem.
	Found func(Finding)
	// Checking is called periodically with the current step and its progress.
	Checking func(what string, done int64)
}

// checkedBetweenReports is the number of records between two checks of the context and two reports.
const checkedBetweenReports = 1024

// step reports the progress and returns an error if ctx is done.
func (v Verification) step(ctx context.Context, what string, done int64) error {
	if done%checkedBetweenReports != 0 {
		return nil
	}
	v.Checking(what, done)
	return ctx.Err()
}
