// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrainTimeout checks that a leader has stopped before another process can take its Lease.
func TestDrainTimeout(t *testing.T) {
	for name, times := range map[string]Times{"OneOfSeveral": OneOfSeveral, "Single": Single} {
		if left := times.Duration - times.RenewDeadline; DrainTimeout >= left {
			t.Errorf("%s leaves %v at the renew deadline, want more than %v", name, left, DrainTimeout)
		}
		if times.Duration%time.Second != 0 {
			t.Errorf("%s: a Lease cannot have the duration %v", name, times.Duration)
		}
	}
}

// TestDraining checks that a draining context has no end while its parent has none.
func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, end := context.WithCancel(t.Context())
		draining, cancel := Draining(term)
		defer cancel()
		<-time.After(time.Hour)
		if err := draining.Err(); err != nil {
			t.Fatalf("it ended before the term: %v", err)
		}
		ended := time.Now()
		end()
		<-draining.Done()
		if took := time.Since(ended); took != DrainTimeout {
			t.Errorf("it ended %v after the term, want %v", took, DrainTimeout)
		}
		late, cancel := Draining(term)
		<-late.Done()
		cancel()
	})
}
