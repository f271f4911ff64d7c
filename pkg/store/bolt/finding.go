// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
)

// Finding is one thing that is wrong with a store file.
type Finding struct {
	// File is the file's path. Bucket is empty for what concerns the file as a whole,
	// Key for what concerns a whole bucket.
	File, Bucket, Key string
	// Problem says what is there and what should be.
	Problem string
}

// String is the finding in one line, with the key quoted.
func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.File, f.problem()) }

// problem is the finding without the file.
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

// Verification says where the results of [Verify] go. Its functions are called from
// one goroutine at a time.
type Verification struct {
	// Found takes what is wrong, as it is found.
	Found func(Finding)
	// Checking takes, again and again, what is being checked and how much of it is done.
	Checking func(what string, done int64)
}

// checkedBetweenReports is how many records are checked between two looks at the
// context and two reports.
const checkedBetweenReports = 1024

// step reports progress and tells whether to go on.
func (v Verification) step(ctx context.Context, what string, done int64) error {
	if done%checkedBetweenReports != 0 {
		return nil
	}
	v.Checking(what, done)
	return ctx.Err()
}
