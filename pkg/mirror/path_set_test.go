// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"testing"
)

func TestPathSet(t *testing.T) {
	const count = 10_000
	set := newPathSet()
	for i := range count {
		set.add(fmt.Sprintf("core/v1/configmaps/shop/settings-%d.yaml", i))
		set.add("core/v1/configmaps/shop/settings-0.yaml")
	}
	if set.len() != count {
		t.Errorf("%d paths, want %d", set.len(), count)
	}
	for i := range 2 * count {
		if path := fmt.Sprintf("core/v1/configmaps/shop/settings-%d.yaml", i); set.has(path) != (i < count) {
			t.Errorf("%s is in the set: %v", path, set.has(path))
		}
	}
}
