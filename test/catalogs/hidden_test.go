// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testUnreachableSource creates a catalog of a namespace that the server has no permission to read at first.
func (s *testCluster) testUnreachableSource(t *testing.T) {
	c := s.newUnreachable(t, "hidden")
	s.eve.Apply(t, c.manifest("shop", apiAndWorker))
	mirrortest.Eventually(t, "the catalog reports the missing permission", func(ctx context.Context) error {
		out, err := s.eve.Try.Field(ctx, c.team, "cat/shop", `{.status.conditions[?(@.type=="Ready")]}`)
		if err == nil && (!strings.Contains(out, "False") || !strings.Contains(out, "cannot list resource")) {
			err = fmt.Errorf("condition: %s", out)
		}
		return err
	})
	c.permit(t)
	c.waitForRecords(t, "shop", 1)
	// Each type is listed separately: the first record may be written before the last type is listed.
	c.HaveCondition(t, c.team, "SourceReachable", "cat/shop")
	c.expectColumns(t, map[string]string{"READY": "True", "STATE": "Up to date", "WORKLOADS": "2"}, "cat", "shop")
	c.expectNextChange(t, "shop", 1)
}
