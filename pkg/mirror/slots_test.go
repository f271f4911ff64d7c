// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"testing"
)

func TestSlots(t *testing.T) {
	s := newSlots(3, 2)
	// tries says whether there is a slot.
	tries := func(url string) func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // with both ready, select takes either
			release, err := s.acquire(ctx, url)
			if err == nil {
				return release
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		return nil
	}
	one, two := tries("a"), tries("a")
	if one == nil || two == nil {
		t.Fatal("a repository has no slots")
	}
	if tries("a") != nil {
		t.Error("one repository takes more than its part")
	}
	three := tries("b")
	if three == nil {
		t.Fatal("one repository keeps another from its slot")
	}
	if tries("c") != nil {
		t.Error("more than all slots are taken")
	}
	two()
	if tries("b") == nil {
		t.Error("a slot that was given back is not there")
	}
	one()
	three()
	if _, ok := s.of["a"]; ok {
		t.Error("a repository that nobody uses is remembered")
	}
}
