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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// retained lets each catalog have no more than its newest record.
func (s *stage) retained(t *testing.T) {
	c := s.newScene(t, "retained")
	defer s.gather(t, shortWindow)
	c.newCatalog(t, "shop")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.recorded(t, "shop", 2)
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	c.recorded(t, "shop", 3)
	before, err := c.records(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}

	s.govern(t, "retention: {keepPerSubject: 1, maxPerSubject: 1, archive: {type: File}}")
	mirrortest.Eventually(t, "the older records go", func(ctx context.Context) error {
		left, err := c.records(ctx, "shop")
		if err == nil && len(left) > 1 {
			err = fmt.Errorf("%d are there", len(left))
		}
		return err
	})
	if left := c.recorded(t, "shop", 1); left.Name != before[2].Name {
		t.Errorf("%s is left, want the newest, %s", left.Name, before[2].Name)
	}
	archived := c.archived(t)
	for _, record := range before[:2] {
		if diff := cmp.Diff(asJSON(t, &record), archived[record.Name]); diff != "" {
			t.Errorf("archived (-as kubectl printed it +in the archive):\n%s", diff)
		}
	}
	if len(archived) != 2 {
		t.Errorf("%d records of the team are archived, want 2", len(archived))
	}
	c.told(t)
	s.gather(t, shortWindow)
	c.onlyTheNext(t, "shop", 1)
}

// archived are the records of the team that are in the files of the archive, as JSON by name.
func (c *scene) archived(t *testing.T) map[string]string {
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
			t.Errorf("%s is archived twice", record.Name)
		}
		out[record.Name] = asJSON(t, &record)
	}
	return out
}

// lines are those of the archive's files.
func (c *scene) lines(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Env(devcluster.EnvDataDir), "archive", "syncstatuses-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of an archive: %v", len(files), err)
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

// told waits until the SyncPolicy says how many records were archived.
func (s *stage) told(t *testing.T) {
	t.Helper()
	archived := len((&scene{stage: s}).lines(t))
	mirrortest.Eventually(t, "the SyncPolicy counts what was archived", func(ctx context.Context) error {
		out, err := s.Administrator.Run(ctx, "get", "syncpolicy", "default", "-o", "jsonpath={.status.recordsArchived}")
		if err == nil && out != fmt.Sprint(archived) {
			err = fmt.Errorf("%s, not %d", out, archived)
		}
		return err
	})
}
