// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// pausedUntil are the lines of a spec with a pause.
func pausedUntil(end time.Time) string {
	return fmt.Sprintf("%s  pauseUntil: %s\n", apiAndWorker, end.UTC().Format(time.RFC3339))
}

// paused changes production during a pause, beside a catalog that shows when the changes have been recorded.
func (s *stage) paused(t *testing.T) {
	c := s.newScene(t, "paused")
	c.newCatalog(t, "shop")
	c.newCatalog(t, "other")
	end := time.Now().Add(time.Hour)
	c.edit(t, "shop", pausedUntil(end))
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.recorded(t, "other", 2)
	c.setImage(t, s.ann, "worker", "shop/worker:2")
	c.recorded(t, "other", 3)
	c.recorded(t, "shop", 1)
	c.reads(t, map[string]string{"REVISION": "1", "READY": "True", "STATE": "Paused until " + end.UTC().Format(time.RFC3339)}, "cat", "shop")
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	// Nobody ends the pause: its end is near.
	c.edit(t, "shop", pausedUntil(time.Now().Add(3*time.Second)))
	automatic(t, c.recorded(t, "shop", 2), "api", "worker")
	c.offers(t, "shop", map[string]string{"api": "shop/api:2", "worker": "shop/worker:2"})
	c.onlyTheNext(t, "shop", 2)
}

// previewed has changes recorded only, until eve takes them over.
func (s *stage) previewed(t *testing.T) {
	c := s.newScene(t, "previewed")
	c.newCatalog(t, "shop")
	c.edit(t, "shop", apiAndWorker+"  previewOnly: true\n")
	c.setImage(t, s.ann, "api", "shop/api:2")
	record := c.recorded(t, "shop", 2)
	automatic(t, record, "api")
	if !record.Status.Preview || record.Status.Revision != 0 {
		t.Errorf("preview %v of revision %d", record.Status.Preview, record.Status.Revision)
	}
	c.reads(t, map[string]string{"STATE": "Preview: 1 workload changed", "CHANGED": "api", "BY": "ann"}, "ss", record.Name)
	c.reads(t, map[string]string{"REVISION": "1", "STATE": "Changes are only recorded"}, "cat", "shop")
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.edit(t, "shop", apiAndWorker+"  previewOnly: false\n")
	record = c.recorded(t, "shop", 3)
	if record.Status.State != v1alpha1.SyncStateApplied || record.Status.Actor != "eve" || record.Status.Preview {
		t.Errorf("state %s, actor %q, preview %v", record.Status.State, record.Status.Actor, record.Status.Preview)
	}
	c.reads(t, map[string]string{"REVISION": "2", "STATE": "Up to date"}, "cat", "shop")
	c.offers(t, "shop", map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.onlyTheNext(t, "shop", 3)
}
