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

	"github.com/configbutler/slipstream/test/mirrortest"
)

// relisted counts the comparisons of namespaces with their catalogs that watches have asked for.
const relisted = `slipstream_catalog_intake_resyncs_total{reason="relisted"}`

// restarted ends the server in both ways, with nothing and with changes to find out at its next start.
func (s *stage) restarted(t *testing.T) {
	c := s.newScene(t, "restarted")
	c.newCatalog(t, "shop")
	records := 1
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		s.restart(t, signal, func() {})
		c.onlyTheNext(t, "shop", records)
		s.restart(t, signal, func() { c.changeUnseen(t, signal.String()) })
		automatic(t, c.recorded(t, "shop", records+2), "api", "worker")
		c.onlyTheNext(t, "shop", records+2)
		records += 3
	}
}

// restart does something while there is no server.
func (s *stage) restart(t *testing.T, signal syscall.Signal, meanwhile func()) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// changeUnseen changes api more than once and makes worker come or go. A list of the workloads after that has all of it: the API
// server answers from a cache, which comes after its writes, and what it shows later would be a batch of its own.
func (c *scene) changeUnseen(t *testing.T, tag string) {
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
		cached, err := c.Administrator.Run(ctx, "get", "--raw", "/apis/apps/v1/namespaces/"+c.source+"/deployments?resourceVersion=0")
		if err == nil && (!strings.Contains(cached, `"shop/api:`+tag+`"`) || strings.Contains(cached, `"shop/worker:1"`) == had) {
			err = errors.New(cached)
		}
		return err
	})
}

// expired takes the watches away for so long that the history is gone which they would go on with.
func (s *stage) expired(t *testing.T) {
	c := s.newScene(t, "expired")
	c.newCatalog(t, "shop")
	c.onlyTheNext(t, "shop", 1)

	s.lose(t, func() {})
	c.onlyTheNext(t, "shop", 2)
	s.lose(t, func() { c.changeUnseen(t, "lost") })
	records := c.recordedSince(t, "shop", 3, "api", "worker")
	c.reads(t, map[string]string{"STATE": "Up to date, 1 missing"}, "cat", "shop")
	c.offers(t, "shop", map[string]string{"api": "shop/api:lost", "worker": "shop/worker:1"})
	c.onlyTheNext(t, "shop", records)
}

// lose does something while the server cannot watch, and waits until it has listed.
func (s *stage) lose(t *testing.T, meanwhile func()) {
	t.Helper()
	before, err := s.Counted(t.Context(), relisted)
	if err != nil {
		t.Fatal(err)
	}
	s.wire.Sever(true)
	meanwhile()
	s.ForgetHistory(t)
	s.wire.Sever(false)
	mirrortest.Eventually(t, "another list", func(ctx context.Context) error {
		now, err := s.Counted(ctx, relisted)
		if err == nil && now == before {
			err = errors.New("none yet")
		}
		return err
	})
}
