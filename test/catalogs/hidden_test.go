// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/mirrortest"
)

// hidden has a catalog of a namespace that the server may not follow before somebody permits it.
func (s *stage) hidden(t *testing.T) {
	c := s.newHiddenScene(t, "hidden")
	if _, err := c.apply(t.Context(), s.eve, "shop", apiAndWorker); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the catalog says what is missing", func(ctx context.Context) error {
		out, err := s.eve.Kubectl.Run(ctx, "get", "cat", "shop", "-n", c.team)
		if err == nil && (!strings.Contains(out, "False") || !strings.Contains(out, "cannot list resource")) {
			err = fmt.Errorf("it says\n%s", out)
		}
		return err
	})
	c.permit(t)
	c.recorded(t, "shop", 1)
	// Each type of workload is listed again by itself, so the record of the first may be there before the last is listed.
	c.Run(t, "wait", "-n", c.team, "cat/shop", "--for=condition=SourceReachable", "--timeout=180s")
	c.reads(t, map[string]string{"READY": "True", "STATE": "Up to date", "WORKLOADS": "2"}, "cat", "shop")
	c.onlyTheNext(t, "shop", 1)
}
