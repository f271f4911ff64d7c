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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// committed has production mirrored to Git. A record names the commit that holds a change, though the remote may have taken
// it long after the record was written.
func (s *stage) committed(t *testing.T) {
	c := s.newScene(t, "mirrored")
	m := s.NewMirror(t, c.source)
	m.Watch(t, "workloads", "deployments")
	m.Settled(t)
	c.newCatalog(t, "shop")

	c.setImage(t, s.ann, "api", "shop/api:2")
	c.recorded(t, "shop", 2)
	c.namesCommit(t, m, 2, s.ann, "api")

	refusing := filepath.Join(m.Repository, "hooks", "pre-receive")
	if err := os.WriteFile(refusing, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	if commits := c.recorded(t, "shop", 3).Status.Commits; len(commits) > 0 {
		t.Errorf("the remote refuses everything, and the record names %+v", commits)
	}
	if err := os.Remove(refusing); err != nil {
		t.Fatal(err)
	}
	c.namesCommit(t, m, 3, s.bob, "worker")
	c.namesCommit(t, m, 2, s.ann, "api")
}

// namesCommit waits until a record of the catalog shop, which tells of somebody's change of a workload, names one commit, and
// expects that to be the last one of the workload's file, by the same author.
func (c *scene) namesCommit(t *testing.T, m *mirrortest.Mirror, record int, by *people.Person, workload string) {
	t.Helper()
	var status v1alpha1.SyncRecord
	mirrortest.Eventually(t, fmt.Sprintf("record %d names a commit", record), func(ctx context.Context) error {
		records, err := c.records(ctx, "shop")
		if err != nil {
			return err
		}
		if status = records[record-1].Status; len(status.Commits) == 0 {
			return errors.New("it names none")
		}
		return nil
	})
	automatic(t, &v1alpha1.SyncStatus{Status: status}, workload)
	if len(status.ChangedBy) != 1 || status.ChangedBy[0].Username != by.Name {
		t.Errorf("changed by %+v, want %s", status.ChangedBy, by.Name)
	}
	out, err := m.Git(t.Context(), "log", "-1", "--format=%H %an %s", "main", "--",
		fmt.Sprintf("%s/apps/v1/deployments/%s/%s.yaml", m.Folder, c.source, workload))
	if err != nil {
		t.Fatal(err)
	}
	commit := status.Commits[0]
	if got := fmt.Sprintf("%s %s %s", commit.SHA, by.Name, commit.Message); len(status.Commits) > 1 || got != strings.TrimSpace(out) {
		t.Errorf("record %d names %+v, and git log shows %s", record, status.Commits, out)
	}
	if want := (v1alpha1.NamespacedObjectReference{Namespace: m.Namespace, Name: "main"}); commit.DestinationRef != want {
		t.Errorf("the commit was made for %+v, want %+v", commit.DestinationRef, want)
	}
}
