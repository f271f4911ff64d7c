// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeout is how long tests wait for a state. It is longer than any step takes on a busy machine, so that only a defect exceeds it.
const Timeout = 5 * time.Minute

// pauseShare is how many times longer than a check the pause after it is, at least, up to maxPause. Tests that wait leave most of the
// processor to the server for which they wait, also if each check runs a program.
const (
	pauseShare = 2
	maxPause   = 2 * time.Second
)

// Eventually waits until check returns no error, and fails the test with what was awaited and the last error after Timeout. The
// pauses between checks grow from one millisecond to 100, or to twice the duration of the check, two seconds at most.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	EventuallyWithin(t, Timeout, what, func(context.Context) error { return check() })
}

// Described returns an error whose text ends with a description. The description is made when the text is read: a check of Eventually
// fails many times, and only the text of its last error is read. By then the context of the check has ended: the description has one of
// its own, which ends after descriptionTimeout.
func Described(err error, describe func(context.Context) string) error {
	return described{err, describe}
}

// descriptionTimeout is longer than any command takes unless the server hangs.
const descriptionTimeout = 30 * time.Second

type described struct {
	error
	describe func(context.Context) string
}

func (d described) Error() string {
	ctx, cancel := context.WithTimeout(context.Background(), descriptionTimeout)
	defer cancel()
	return d.error.Error() + ": " + d.describe(ctx)
}

func (d described) Unwrap() error { return d.error }

// EventuallyTrue is Eventually for a condition.
func EventuallyTrue(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if !condition() {
			return errNotYet
		}
		return nil
	})
}

// NoGoroutines waits until no goroutines are left except those that existed before, from goleak.IgnoreCurrent.
func NoGoroutines(t testing.TB, before goleak.Option) {
	t.Helper()
	Eventually(t, "no goroutines are left", func() error { return goleak.Find(before) })
}

// EventuallyWithin is Eventually with a timeout of the caller, for checks that send requests. Their context ends with the timeout.
func EventuallyWithin(t testing.TB, timeout time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	defer cancel()
	var last error
	pauses := wait.Backoff{Duration: time.Millisecond, Factor: 1.2, Steps: 100, Cap: 100 * time.Millisecond}
	for {
		started := time.Now()
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil || last == nil { // The error of a check that was cut off is only that of the context.
			last = err
		}
		select {
		case <-time.After(max(pauses.Step(), min(pauseShare*time.Since(started), maxPause))):
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, timeout, last)
		}
	}
}
