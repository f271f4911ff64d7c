// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// relisted is the counter of resyncs of namespaces that a new list of a watch has triggered.
const relisted = `slipstream_catalog_intake_resyncs_total{reason="relisted"}`

// testRestart stops the server with both signals, without and with changes before the next start. A batch that was pending when the server
// stopped reads the present state of its objects, so that the changes can be in two records.
func (s *testCluster) testRestart(t *testing.T) {
	c := s.newFixture(t, "restarted")
	c.newCatalog(t, "shop")
	records := 1
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		s.restart(t, signal, func() {})
		c.expectNextChange(t, "shop", records)
		s.restart(t, signal, func() { c.changeUnseen(t, signal.String()) })
		records = c.waitForChanges(t, "shop", records+1, "api", "worker")
		c.expectNextChange(t, "shop", records)
		records++
	}
}

// restart calls a function while the server is stopped.
func (s *testCluster) restart(t *testing.T, signal syscall.Signal, meanwhile func()) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// changeUnseen changes api twice and creates or deletes worker. It waits until the API server's watch cache has all changes, so
// that the next list returns them in one batch.
func (c *fixture) changeUnseen(t *testing.T, tag string) {
	t.Helper()
	c.setImage(t, c.ann, "api", "shop/api:unseen")
	c.setImage(t, c.ann, "api", "shop/api:"+tag)
	had := c.has(t, "worker")
	if had {
		c.remove(t, c.ann, "worker")
	} else {
		c.Apply(t, fmt.Sprintf(deployment, c.source, "worker", "shop/worker:1"))
	}
	mirrortest.Eventually(t, "the API server's cache has the changes", func(ctx context.Context) error {
		cached, err := c.Try.Read(ctx, "/apis/apps/v1/namespaces/"+c.source+"/deployments?resourceVersion=0")
		if err == nil && (!strings.Contains(cached, `"shop/api:`+tag+`"`) || strings.Contains(cached, `"shop/worker:1"`) == had) {
			err = errors.New(cached)
		}
		return err
	})
}

// testExpiredWatch interrupts the watches until the history after their last event is compacted.
func (s *testCluster) testExpiredWatch(t *testing.T) {
	c := s.newFixture(t, "expired")
	c.newCatalog(t, "shop")
	c.expectNextChange(t, "shop", 1)

	s.expireWatches(t, func() {})
	c.expectNextChange(t, "shop", 2)
	s.expireWatches(t, func() { c.changeUnseen(t, "lost") })
	records := c.waitForChanges(t, "shop", 3, "api", "worker")
	c.expectColumns(t, map[string]string{"STATE": "Up to date, 1 missing"}, "cat", "shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:lost", "worker": "shop/worker:1"})
	c.expectNextChange(t, "shop", records)
}

// expireWatches calls a function while the server cannot watch, and waits until it has listed again.
func (s *testCluster) expireWatches(t *testing.T, meanwhile func()) {
	t.Helper()
	before, err := s.Counted(t.Context(), relisted)
	if err != nil {
		t.Fatal(err)
	}
	s.wire.Sever(true)
	meanwhile()
	s.ForgetHistory(t)
	s.wire.Sever(false)
	mirrortest.Eventually(t, "a new list", func(ctx context.Context) error {
		now, err := s.Counted(ctx, relisted)
		if err == nil && now == before {
			err = errors.New("no new list")
		}
		return err
	})
}
