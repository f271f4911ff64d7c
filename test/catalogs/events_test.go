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

// announced has somebody read the Events of a catalog, with a time between in which notices are stopped.
func (s *stage) announced(t *testing.T) {
	c := s.newScene(t, "announced")
	defer s.gather(t, shortWindow)
	c.newCatalog(t, "shop")
	c.hears(t, "shop", "Revision 1: 2 workloads changed by eve")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.recorded(t, "shop", 2)
	c.hears(t, "shop", "Revision 2: 1 workload changed")
	c.listed(t)

	s.govern(t, "suspend: {catalogNotices: true}")
	c.newCatalog(t, "quiet")
	c.remove(t, s.ann, "worker")
	automatic(t, c.recorded(t, "quiet", 2), "worker")
	c.recorded(t, "shop", 3)

	s.govern(t, "suspend: {catalogNotices: false}")
	c.newCatalog(t, "loud")
	c.hears(t, "loud", "Revision 1: 1 workload changed by eve")
	if out := c.events(t.Context(), "quiet"); out != "" {
		t.Errorf("notices were stopped, and there are\n%s", out)
	}
	if out := c.events(t.Context(), "shop"); strings.Contains(out, "Revision 3") || strings.Contains(out, "worker") {
		t.Errorf("notices were stopped, and there are\n%s", out)
	}
}

// events are what kubectl prints of the Events of a catalog, of which it needs no more than the messages.
func (c *scene) events(ctx context.Context, catalog string) string {
	out, err := c.Administrator.Run(ctx, "get", "events", "-n", c.team, "-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`,
		"--field-selector=involvedObject.kind=AppCatalog,involvedObject.name="+catalog)
	if err != nil {
		return err.Error()
	}
	return out
}

// hears waits until there is an Event of the reason Changed with the message.
func (c *scene) hears(t *testing.T, catalog, message string) {
	t.Helper()
	mirrortest.Eventually(t, "an Event: "+message, func(ctx context.Context) error {
		out := c.events(ctx, catalog)
		if !strings.Contains(out, "Normal Changed "+message+"\n") {
			return fmt.Errorf("there are\n%s", out)
		}
		return nil
	})
}

// listed expects kubectl events to show what has been heard, beside the catalog.
func (c *scene) listed(t *testing.T) {
	t.Helper()
	out := c.Run(t, "events", "-n", c.team, "--for=appcatalog/shop")
	for _, want := range []string{"Changed", "AppCatalog/shop", "Revision 1: 2 workloads changed by eve", "Revision 2: 1 workload changed"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl events prints, without %q,\n%s", want, out)
		}
	}
}
