// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// TestStateStaysKnownDuringLists checks that polls and resyncs do not change whether a pipeline is ready.
func TestStateStaysKnownDuringLists(t *testing.T) {
	for mode, poll := range map[string]bool{"watch": false, "poll": true} {
		t.Run(mode, func(t *testing.T) {
			s := newFixture(t, configMapType)
			s.server.put(configMaps, object("shop", "kept", "1"))
			s.run()
			selection := instances("configmaps")
			selection.Poll = poll
			s.set(shop, selection, newTarget())
			s.listed(shop)
			asked := 0
			s.server.onList(func(string) {
				if asked++; !s.observer.State(shop).Listed {
					t.Error("state is not listed")
				}
			})
			if err := s.observer.List(t.Context(), shop, ledger.Immediate); err != nil {
				t.Fatal(err)
			}
			s.server.onList(nil)
			if asked == 0 {
				t.Error("no request was made")
			}
		})
	}
}
