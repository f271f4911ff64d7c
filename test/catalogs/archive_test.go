// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testArchiveInGit keeps only the newest record of each catalog, and archives the others in a branch.
func (s *testCluster) testArchiveInGit(t *testing.T) {
	c := s.newFixture(t, "archived")
	defer s.setBatchWindow(t, shortWindow)
	m := s.NewMirror(t, c.source)
	m.Watch(t, "workloads", "deployments")
	m.Settled(t)
	c.newCatalog(t, "shop")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "shop", 2)
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	c.waitForRecords(t, "shop", 3)
	c.waitForCommit(t, 2)
	c.waitForCommit(t, 3) // from now on, the records do not change
	before := c.printed(t, "shop")
	archive := fmt.Sprintf("archive: {type: GitDestination, destinationRef: {namespace: %s, name: main}}}", m.Namespace)

	s.applySyncPolicy(t, "retention: {days: 90, keepPerSubject: 1, maxPerSubject: 1, "+archive)
	mirrortest.Eventually(t, "the SyncPolicy reports that the destination does not admit it", func(ctx context.Context) error {
		out, err := s.Try.Field(ctx, "", "syncpolicy/default", `{.status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(out, "spec.accessPolicy.allowClusterRules must be true") {
			err = fmt.Errorf("condition message: %q", out)
		}
		return err
	})
	c.waitForRecords(t, "shop", 3)

	s.Patch(t, m.Namespace, "gitdestination/main", `{"spec":{"accessPolicy":{"allowClusterRules":true}}}`)
	mirrortest.Eventually(t, "the destination is reconciled", func(ctx context.Context) error {
		out, err := s.Try.Field(ctx, m.Namespace, "gitdestination/main", "{.metadata.generation}-{.status.observedGeneration}")
		if generation, observed, _ := strings.Cut(out, "-"); err == nil && generation != observed {
			err = fmt.Errorf("generation %s, observed %s", generation, observed)
		}
		return err
	})
	s.applySyncPolicy(t, "retention: {days: 91, keepPerSubject: 1, maxPerSubject: 1, "+archive) // triggers a reconcile
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
	inGit := c.archivedIn(t, m)
	for _, record := range before[:2] {
		if diff := cmp.Diff(asJSON(t, &record), inGit[record.Name]); diff != "" {
			t.Errorf("archived record (-as printed by kubectl +in the branch):\n%s", diff)
		}
	}
	if len(inGit) != 2 {
		t.Errorf("%d records of the team are archived, want 2", len(inGit))
	}
	m.Settled(t)
	m.Intact(t)
}

// archivedIn returns the team's records in the branch, as JSON by name.
func (c *fixture) archivedIn(t *testing.T, m *mirrortest.Mirror) map[string]string {
	t.Helper()
	folder := m.Folder + "/.configbutler/archive/"
	files, err := m.Git(t.Context(), "ls-tree", "-r", "--name-only", "main", folder)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, file := range strings.Fields(files) {
		text, err := m.Git(t.Context(), "show", "main:"+file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			var record v1alpha1.SyncStatus
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("reading %q: %v", line, err)
			}
			if _, twice := out[record.Name]; twice {
				t.Errorf("%s was archived twice", record.Name)
			}
			if record.Namespace == c.team {
				out[record.Name] = asJSON(t, &record)
			}
		}
	}
	return out
}
