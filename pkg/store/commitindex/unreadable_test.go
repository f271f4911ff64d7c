// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex_test

import (
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// A row that cannot be read neither blocks a push nor hides the content of other rows.
func TestRowsThatCannotBeReadAreLeftOut(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	log.SetScope(shop)
	entries := make([]commitindex.Entry, 60) // They take two rows.
	for i := range entries {
		entries[i] = commit(web("shop"), fmt.Sprintf("%02d", i), "7")
	}
	s.must(log.Prepare(t.Context(), "tip", entries))
	for _, key := range []string{"scope", "pushes/tip/000000", "objects/shop/apps/deployments/web/ops/main/zz"} {
		s.must(s.table().Put(t.Context(), table.Row{Key: key, Value: []byte("{")}))
	}
	log = s.open(0)
	s.must(log.Record(t.Context(), "tip"))
	s.knows(log, web("shop"), "50", "51", "52", "53", "54", "55", "56", "57", "58", "59")
	log.SetScope(shop)
	_, stop := s.run(log)
	s.clock.Eventually("what cannot be read goes", func() error {
		if n := s.rows(); n != 10 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	stop()
	if !s.open(0).InScope(web("shop")) {
		t.Error("nobody cares any more")
	}
}
