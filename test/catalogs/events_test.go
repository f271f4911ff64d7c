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

// testEvents checks the Events of catalogs, also while notices are suspended.
func (s *testCluster) testEvents(t *testing.T) {
	c := s.newFixture(t, "announced")
	defer s.setBatchWindow(t, shortWindow)
	c.newCatalog(t, "shop")
	c.waitForEvent(t, "shop", "Revision 1: 2 workloads changed by eve")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "shop", 2)
	c.waitForEvent(t, "shop", "Revision 2: 1 workload changed")
	c.expectKubectlEvents(t)

	s.applySyncPolicy(t, "suspend: {catalogNotices: true}")
	c.newCatalog(t, "quiet")
	c.remove(t, s.ann, "worker")
	expectAutomatic(t, c.waitForRecords(t, "quiet", 2), "worker")
	c.waitForRecords(t, "shop", 3)

	s.applySyncPolicy(t, "suspend: {catalogNotices: false}")
	c.newCatalog(t, "loud")
	c.waitForEvent(t, "loud", "Revision 1: 1 workload changed by eve")
	if out := c.events(t.Context(), "quiet"); out != "" {
		t.Errorf("Events while notices are suspended:\n%s", out)
	}
	if out := c.events(t.Context(), "shop"); strings.Contains(out, "Revision 3") || strings.Contains(out, "worker") {
		t.Errorf("Events while notices are suspended:\n%s", out)
	}
}

// events returns type, reason and message of the Events of a catalog.
func (c *fixture) events(ctx context.Context, catalog string) string {
	out, err := c.Try.Events(ctx, c.team, "involvedObject.kind=AppCatalog,involvedObject.name="+catalog)
	if err != nil {
		return err.Error()
	}
	return out
}

// waitForEvent waits for a Changed Event with the message.
func (c *fixture) waitForEvent(t *testing.T, catalog, message string) {
	t.Helper()
	mirrortest.Eventually(t, "Event: "+message, func(ctx context.Context) error {
		out := c.events(ctx, catalog)
		if !strings.Contains(out, "Normal Changed "+message+"\n") {
			return fmt.Errorf("found\n%s", out)
		}
		return nil
	})
}

// expectKubectlEvents expects the Events in the output of kubectl events.
func (c *fixture) expectKubectlEvents(t *testing.T) {
	t.Helper()
	out := c.Run(t, "events", "-n", c.team, "--for=appcatalog/shop")
	for _, want := range []string{"Changed", "AppCatalog/shop", "Revision 1: 2 workloads changed by eve", "Revision 2: 1 workload changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl events lacks %q:\n%s", want, out)
		}
	}
}
