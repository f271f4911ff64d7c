// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// records returns the records of an environment with a type, oldest first.
func (c *fixture) records(ctx context.Context, environment string, of v1alpha1.SyncType) ([]v1alpha1.SyncStatus, error) {
	list, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.LabelEnvironment: environment, v1alpha1.LabelSyncType: string(of)}.String(),
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.SyncStatus) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// recordNames returns the names of the records of an environment with a type.
func (c *fixture) recordNames(t *testing.T, environment string, of v1alpha1.SyncType) (names []string) {
	t.Helper()
	records, err := c.records(t.Context(), environment, of)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		names = append(names, record.Name)
	}
	return names
}

// nextRecord waits for a record whose name is not in known.
func (c *fixture) nextRecord(t *testing.T, environment string, of v1alpha1.SyncType, known []string) (name string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("a new record of %s with type %s", environment, of), func(ctx context.Context) error {
		records, err := c.records(ctx, environment, of)
		for _, record := range records {
			if !slices.Contains(known, record.Name) {
				name = record.Name
				return nil
			}
		}
		return errors.Join(err, c.described(errors.New("no new record")))
	})
	return name
}

// record reads a record.
func (c *fixture) record(t *testing.T, name string) *v1alpha1.SyncStatus {
	t.Helper()
	record, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// resting are the states that a record keeps until a request changes it.
var resting = []v1alpha1.SyncState{
	v1alpha1.SyncStateCompleted, v1alpha1.SyncStateConflicted, v1alpha1.SyncStateManualIntervention, v1alpha1.SyncStateSuperseded,
	v1alpha1.SyncStateDismissed,
}

// waitForState waits until a record is in a resting state, and expects this state.
func (c *fixture) waitForState(t *testing.T, name string, want v1alpha1.SyncState) (record *v1alpha1.SyncStatus) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("record %s becomes %s", name, want), func(ctx context.Context) (err error) {
		record, err = c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !slices.Contains(resting, record.Status.State) {
			err = c.described(fmt.Errorf("state %s", record.Status.State))
		}
		return err
	})
	if record.Status.State != want {
		t.Fatalf("state of record %s = %s, want %s: %s%s", name, record.Status.State, want, problems(record), c.describe(t.Context()))
	}
	return record
}

// problems returns the error and failures of a record.
func problems(record *v1alpha1.SyncStatus) string {
	var lines []string
	if record.Status.Error != nil {
		lines = append(lines, record.Status.Error.Message)
	}
	for _, failure := range record.Status.Failures {
		lines = append(lines, failure.Reason+": "+failure.Message)
	}
	return strings.Join(lines, "\n")
}

// changed returns the changes of a record, such as "ConfigMap settings Changed".
func changed(record *v1alpha1.SyncStatus) (out []string) {
	for _, summary := range record.Status.ResourceSummaries {
		out = append(out, fmt.Sprintf("%s %s %s", summary.Type, summary.Name, summary.ChangeType))
	}
	slices.Sort(out)
	return out
}
