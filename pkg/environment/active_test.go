// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestMostOfWhatIsActiveIsShown has more syncs than the status can list: running syncs are listed before pending ones.
func TestMostOfWhatIsActiveIsShown(t *testing.T) {
	s := quiet()
	for i := range 6 {
		s.record(fmt.Sprint("waits-", i), catalogRun, retrying, 9-i, "jane")
	}
	s.record("runs", refreshRun, v1alpha1.SyncStateInProgress, 1, "")
	begins := s.record("begins", catalogRun, pending, 0, "jane")
	s.status().describe([]*v1alpha1.SyncStatus{begins})
	if got := fmt.Sprint(s.environment.Status.ActiveSyncs); got != "[runs begins waits-0 waits-1]" {
		t.Errorf("active syncs: %s", got)
	}
}
