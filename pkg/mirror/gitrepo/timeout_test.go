// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

// TestTimeLimitExcludesSlotWait waits for a slot for much longer than the time limit of the call.
func TestTimeLimitExcludesSlotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := fairshare.New(1)
		release, err := slots.Acquire(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		remote := &Remote{Limits: Limits{Time: time.Minute, Large: slots, Owner: "mine"}}
		ctx, budget := remote.begin(t.Context())
		<-time.After(50 * time.Second)
		time.AfterFunc(time.Hour, release)
		if err := budget.hold(ctx, smallMemory+1); err != nil {
			t.Fatal(err)
		}
		<-time.After(9 * time.Second)
		if err := ctx.Err(); err != nil {
			t.Errorf("after 59 seconds without the wait: %v", err)
		}
		<-time.After(2 * time.Second)
		var failure *Error
		if err := remote.failure(ctx, "push", ctx.Err()); !errors.As(err, &failure) || failure.Kind != Unreachable ||
			!strings.Contains(failure.Message, "not answered within 1m0s") {
			t.Errorf("after 61 seconds without the wait: %v", err)
		}
		budget.end()
		if _, err := slots.Acquire(t.Context(), "other"); err != nil {
			t.Errorf("slot was not released: %v", err)
		}
	})
}
