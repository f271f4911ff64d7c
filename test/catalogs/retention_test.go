// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testArchiveInFiles keeps only the newest record of each catalog, and archives the others in files.
func (s *testCluster) testArchiveInFiles(t *testing.T) {
	c := s.newFixture(t, "retained")
	defer s.setBatchWindow(t, shortWindow)
	c.newCatalog(t, "shop")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "shop", 2)
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	c.waitForRecords(t, "shop", 3)
	before := c.printed(t, "shop")

	s.applySyncPolicy(t, "retention: {keepPerSubject: 1, maxPerSubject: 1, archive: {type: File}}")
	mirrortest.Eventually(t, "the older records are deleted", func(ctx context.Context) error {
		left, err := c.records(ctx, "shop")
		if err == nil && len(left) > 1 {
			err = fmt.Errorf("%d records", len(left))
		}
		return err
	})
	if left := c.waitForRecords(t, "shop", 1); left.Name != before[2].Name {
		t.Errorf("%s was kept, want the newest, %s", left.Name, before[2].Name)
	}
	archived := c.archived(t)
	for _, record := range before[:2] {
		if diff := cmp.Diff(asJSON(t, &record), archived[record.Name]); diff != "" {
			t.Errorf("archived record (-as printed by kubectl +in the archive):\n%s", diff)
		}
	}
	if len(archived) != 2 {
		t.Errorf("%d records of the team are archived, want 2", len(archived))
	}
	c.waitForArchivedCount(t)
	s.setBatchWindow(t, shortWindow)
	c.expectNextChange(t, "shop", 1)
}

// archived returns the team's records in the files of the archive, as JSON by name.
func (c *fixture) archived(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range c.lines(t) {
		var record v1alpha1.SyncStatus
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("reading %q: %v", line, err)
		}
		if record.Namespace != c.team {
			continue
		}
		if _, twice := out[record.Name]; twice {
			t.Errorf("%s was archived twice", record.Name)
		}
		out[record.Name] = asJSON(t, &record)
	}
	return out
}

// lines returns the lines of the archive's files.
func (c *fixture) lines(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Env(devcluster.EnvDataDir), "archive", "syncstatuses-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d archive files: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(content)), "\n")...)
	}
	return lines
}

func asJSON(t *testing.T, record *v1alpha1.SyncStatus) string {
	t.Helper()
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// waitForArchivedCount waits until the status of the SyncPolicy has the number of archived records.
func (s *testCluster) waitForArchivedCount(t *testing.T) {
	t.Helper()
	archived := len((&fixture{testCluster: s}).lines(t))
	mirrortest.Eventually(t, "the SyncPolicy has the number of archived records", func(ctx context.Context) error {
		out, err := s.Try.Field(ctx, "", "syncpolicy/default", "{.status.recordsArchived}")
		if err == nil && out != fmt.Sprint(archived) {
			err = fmt.Errorf("recordsArchived = %s, want %d", out, archived)
		}
		return err
	})
}
