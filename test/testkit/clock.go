// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// pause is how long goroutines run after a step of the clock, in real time. If it took more than twice as long, because the machine is
// busy, they run for catchUp times the delay more, up to maxCatchUp.
const (
	pause      = 2 * time.Millisecond
	catchUp    = 10
	maxCatchUp = 200 * time.Millisecond
)

var errNotYet = errors.New("not yet")

// Noon is the time at which clocks of tests start.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Clock is a clock that only the test advances.
type Clock struct {
	*clocktesting.FakeClock
	t testing.TB
}

// NewClock returns a clock at Noon.
func NewClock(t testing.TB) *Clock { return &Clock{clocktesting.NewFakeClock(Noon), t} }

// Eventually advances the clock in seconds until check returns no error, and fails the test after Timeout of real time.
func (c *Clock) Eventually(what string, check func() error) {
	c.t.Helper()
	c.EventuallyBy(time.Second, what, check)
}

// EventuallyBy is Eventually with steps of another length.
func (c *Clock) EventuallyBy(step time.Duration, what string, check func() error) {
	c.t.Helper()
	for deadline := time.Now().Add(Timeout); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within %s: %v", what, Timeout, err)
		}
		c.Advance(1, step)
	}
}

// Advance advances the clock a number of steps. Goroutines run after each, so that timers which they set within a step expire at a later
// one.
func (c *Clock) Advance(steps int, step time.Duration) {
	for range steps {
		c.Step(step)
		started := time.Now()
		<-time.After(pause)
		if late := time.Since(started) - pause; late > pause {
			<-time.After(min(catchUp*late, maxCatchUp))
		}
	}
}
