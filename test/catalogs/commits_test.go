// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// testCommitsInRecords mirrors the source to Git. A record must name the commit with its change, even if the commit is pushed
// long after the record was written.
func (s *testCluster) testCommitsInRecords(t *testing.T) {
	c := s.newFixture(t, "mirrored")
	m := s.NewMirror(t, c.source)
	m.Watch(t, "workloads", "deployments")
	m.Settled(t)
	c.newCatalog(t, "shop")

	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "shop", 2)
	c.expectCommit(t, m, 2, s.ann, "api")

	refusing := filepath.Join(m.Repository, "hooks", "pre-receive")
	if err := os.WriteFile(refusing, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	if commits := c.waitForRecords(t, "shop", 3).Status.Commits; len(commits) > 0 {
		t.Errorf("record has the commits %+v, although all pushes are rejected", commits)
	}
	if err := os.Remove(refusing); err != nil {
		t.Fatal(err)
	}
	c.expectCommit(t, m, 3, s.bob, "worker")
	c.expectCommit(t, m, 2, s.ann, "api")
}

// waitForCommit waits until a record of the catalog shop names a commit.
func (c *fixture) waitForCommit(t *testing.T, record int) (status v1alpha1.SyncRecord) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("record %d has a commit", record), func(ctx context.Context) error {
		records, err := c.records(ctx, "shop")
		if err != nil {
			return err
		}
		if status = records[record-1].Status; len(status.Commits) == 0 {
			return errors.New("record has no commit")
		}
		return nil
	})
	return status
}

// expectCommit waits until a record of the catalog shop names a commit, and expects it to be the last one of a workload's file,
// by the author of the change.
func (c *fixture) expectCommit(t *testing.T, m *mirrortest.Mirror, record int, by *people.Person, workload string) {
	t.Helper()
	status := c.waitForCommit(t, record)
	expectAutomatic(t, &v1alpha1.SyncStatus{Status: status}, workload)
	if len(status.ChangedBy) != 1 || status.ChangedBy[0].Username != by.Name {
		t.Errorf("changedBy = %+v, want %s", status.ChangedBy, by.Name)
	}
	out, err := m.Git(t.Context(), "log", "-1", "--format=%H %an %s", "main", "--",
		fmt.Sprintf("%s/apps/v1/deployments/%s/%s.yaml", m.Folder, c.source, workload))
	if err != nil {
		t.Fatal(err)
	}
	commit := status.Commits[0]
	if got := fmt.Sprintf("%s %s %s", commit.SHA, by.Name, commit.Message); len(status.Commits) > 1 || got != strings.TrimSpace(out) {
		t.Errorf("commits of record %d = %+v, git log shows %s", record, status.Commits, out)
	}
	if want := (v1alpha1.NamespacedObjectReference{Namespace: m.Namespace, Name: "main"}); commit.DestinationRef != want {
		t.Errorf("destination of the commit = %+v, want %+v", commit.DestinationRef, want)
	}
}
