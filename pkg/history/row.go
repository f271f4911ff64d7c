// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the name of the table of the work store with the prepared pushes and the index.
const TableName = "history"

const (
	pushesPrefix = "pushes/"
	// rowChanges is the number of prepared Changes in one row. They have 1 to 2 KiB each, and at most 40 KiB with all names and texts at
	// their limits and escaped, so that a row is below the limit of the store.
	rowChanges = 20
)

// pushKey returns the key of the row of a push with a number.
func pushKey(tip string, number int) string { return fmt.Sprintf("%s%06d", pushPrefix(tip), number) }

// pushKeys returns the keys of all rows of a push of some Changes.
func pushKeys(tip string, changes int) []string {
	keys := make([]string, (changes+rowChanges-1)/rowChanges)
	for i := range keys {
		keys[i] = pushKey(tip, i)
	}
	return keys
}

// pushRow is the stored form of some Changes of a push.
type pushRow struct {
	// At is the time at which they were prepared.
	At time.Time `json:"at"`
	// Changes are the stored forms.
	Changes [][]byte `json:"changes"`
}

func pushPrefix(tip string) string { return pushesPrefix + tip + "/" }

// pushRows returns the rows of a push.
func pushRows(tip string, changes []preparedChange, now time.Time) ([]table.Row, error) {
	var rows []table.Row
	for chunk := range slices.Chunk(changes, rowChanges) {
		push := pushRow{At: now}
		for i := range chunk {
			push.Changes = append(push.Changes, chunk[i].stored)
		}
		value, err := json.Marshal(push)
		if err != nil {
			return nil, fmt.Errorf("encode the Changes of a push: %w", err)
		}
		rows = append(rows, table.Row{Key: pushKey(tip, len(rows)), Value: value})
	}
	return rows, nil
}

// decodePush returns the Changes of a row of a push. Those that cannot be decoded are missing.
func decodePush(row table.Row) (changes []preparedChange, err error) {
	push, err := decode[pushRow](row)
	errs := []error{err}
	for _, stored := range push.Changes {
		change, err := decodeChange(row.Key, stored)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changes = append(changes, preparedChange{change, stored})
	}
	return changes, errors.Join(errs...)
}

// objectOf returns the object of a change.
func objectOf(change *v1alpha1.ChangeSpec) Object {
	version, err := schema.ParseGroupVersion(change.Object.APIVersion)
	if err != nil {
		version = schema.GroupVersion{} // The mirror writes valid versions only.
	}
	return Object{
		GroupResource: version.WithResource(change.Object.Resource).GroupResource(),
		Namespace:     change.Object.Namespace, Name: change.Object.Name,
	}
}

// keyOf returns the key of a Change in the table of Changes.
func keyOf(change *v1alpha1.Change) string { return change.Namespace + "/" + change.Name }

// insert writes Changes. One that exists, because the change is also in a commit of another destination, gets another commit.
func (h *History) insert(ctx context.Context, changes []preparedChange) error {
	rows := make([]table.Row, len(changes))
	for i := range changes {
		rows[i] = table.Row{Key: keyOf(&changes[i].Change), Value: changes[i].stored}
		if rows[i].Value != nil {
			continue
		}
		var err error
		if rows[i].Value, err = encodeChange(&changes[i].Change); err != nil {
			return err
		}
	}
	merge := func(stored, value []byte) []byte {
		merged, err := mergeChanges(stored, value)
		if err != nil {
			logUnreadable(ctx, err)
		}
		return merged
	}
	if err := h.config.Changes.Insert(ctx, merge, rows...); err != nil {
		return fmt.Errorf("store Changes: %w", err)
	}
	return nil
}

// combined returns Changes with different keys: those of one event have the commits of all destinations.
func combined(changes []preparedChange) []preparedChange {
	places := make(map[string]int, len(changes))
	all := make([]preparedChange, 0, len(changes))
	for i := range changes {
		change := &changes[i].Change
		place, found := places[keyOf(change)]
		if !found {
			places[keyOf(change)] = len(all)
			all = append(all, changes[i])
			continue
		}
		absorb(&all[place].Change, change)
		all[place].stored = nil
	}
	return all
}

// absorb adds to a Change what another one that records the same event has: its commits, and what only the other says. What both say is
// that of the first: a destination may have combined earlier changes with this one.
func absorb(change, other *v1alpha1.Change) {
	into, from := &change.Spec, other.Spec
	into.Commits = union(into.Commits, from.Commits)
	if into.Lines == nil && into.Fields == nil {
		into.Lines, into.Fields, into.MoreFields = from.Lines, from.Fields, from.MoreFields
	}
	into.Reason = cmp.Or(into.Reason, from.Reason)
	into.ManagedBy = cmp.Or(into.ManagedBy, from.ManagedBy)
	into.Bypass = into.Bypass || from.Bypass
}

// union returns some commits and those of more that are not among them.
func union(commits, more []v1alpha1.ChangeCommit) []v1alpha1.ChangeCommit {
	commits = slices.Clone(commits)
	for _, commit := range more {
		same := func(other v1alpha1.ChangeCommit) bool {
			return other.DestinationRef == commit.DestinationRef && other.SHA == commit.SHA && other.Path == commit.Path
		}
		if !slices.ContainsFunc(commits, same) {
			commits = append(commits, commit)
		}
	}
	return commits
}

// mergeChanges returns a stored Change with the commits of another one that records the same change.
func mergeChanges(stored, other []byte) ([]byte, error) {
	merged, err := decodeChange("", stored)
	if err != nil {
		return nil, err
	}
	change, err := decodeChange("", other)
	if err != nil {
		return nil, err
	}
	absorb(&merged, &change)
	return encodeChange(&merged)
}

// read returns a stored Change. found is false if there is none.
func (h *History) read(ctx context.Context, key string) (change v1alpha1.Change, found bool, err error) {
	value, found, err := h.config.Changes.Get(ctx, key)
	if err != nil || !found {
		return change, false, err
	}
	if change, err = decodeChange(key, value); err != nil {
		logUnreadable(ctx, err)
	}
	return change, err == nil, nil
}

// encodeChange returns a Change as upstream's storage encodes it.
func encodeChange(change *v1alpha1.Change) ([]byte, error) {
	stored := *change
	stored.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Change"}
	value, err := json.Marshal(&stored)
	if err != nil {
		return nil, fmt.Errorf("encode a Change: %w", err)
	}
	return value, nil
}

// decodeChange returns the Change of a row, which may be compressed.
func decodeChange(key string, value []byte) (v1alpha1.Change, error) {
	plain, err := Decompress(value)
	if err != nil {
		return v1alpha1.Change{}, fmt.Errorf("decode row %s: %w", key, err)
	}
	return decode[v1alpha1.Change](table.Row{Key: key, Value: plain})
}

func decode[T any](row table.Row) (T, error) {
	var value T
	if err := json.Unmarshal(row.Value, &value); err != nil {
		return *new(T), fmt.Errorf("decode row %s: %w", row.Key, err)
	}
	return value, nil
}
