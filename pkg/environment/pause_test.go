// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"
	"time"
)

// TestRemovePause checks that a removal that does not make progress is retried less and less often.
func TestRemovePause(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{
		-time.Second: 2 * time.Second, 0: 2 * time.Second, 15 * time.Second: 2 * time.Second,
		80 * time.Second: 10 * time.Second, time.Hour: time.Minute,
	} {
		if got := removePause(noon, noon.Add(since)); got != want {
			t.Errorf("pause after %s = %s, want %s", since, got, want)
		}
	}
}
