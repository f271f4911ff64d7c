// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/binary"
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
	// pushRowBytes is the size in bytes at which the next prepared Change begins another row. They have 300 bytes each, and at most 40 KiB
	// with all names and texts at their limits and escaped, so that a row is below the limit of the store.
	pushRowBytes = 256 << 10
)

// pushKey returns the key of the row of a push with a number.
func pushKey(tip string, number int) string { return fmt.Sprintf("%s%06d", pushPrefix(tip), number) }

// pushRow is the stored form of some Changes of a push.
type pushRow struct {
	// at is the time at which they were prepared.
	at time.Time
	// changes are the stored forms.
	changes [][]byte
}

func pushPrefix(tip string) string { return pushesPrefix + tip + "/" }

// pushRows returns the rows of a push: each has the time in nanoseconds since 1970 in 8 bytes, and then the stored forms of Changes, each
// after its length.
func pushRows(tip string, changes []preparedChange, now time.Time) (rows []table.Row) {
	var value []byte
	for i := range changes {
		if value == nil {
			value = binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano()))
		}
		value = append(binary.AppendUvarint(value, uint64(len(changes[i].stored))), changes[i].stored...)
		if len(value) >= pushRowBytes || i == len(changes)-1 {
			rows = append(rows, table.Row{Key: pushKey(tip, len(rows)), Value: value})
			value = nil
		}
	}
	return rows
}

// parsePush returns a row of a push. It returns an error with what precedes a damaged part.
func parsePush(row table.Row) (push pushRow, err error) {
	damaged := fmt.Errorf("decode row %s: it is damaged", row.Key)
	if len(row.Value) < 8 {
		return push, damaged
	}
	push.at = time.Unix(0, int64(binary.BigEndian.Uint64(row.Value)))
	for rest := row.Value[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return push, damaged
		}
		end := n + int(size)
		push.changes, rest = append(push.changes, rest[n:end:end]), rest[end:]
	}
	return push, nil
}

// decodePush returns the Changes of a row of a push. Those that cannot be decoded are missing.
func decodePush(row table.Row) (changes []preparedChange, err error) {
	push, err := parsePush(row)
	errs := []error{err}
	for _, stored := range push.changes {
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

// combined returns Changes with different keys, in the memory of changes: those of one event have the commits of all destinations.
func combined(changes []preparedChange) []preparedChange {
	places := make(map[string]int, len(changes))
	count := 0
	for i := range changes {
		change := &changes[i].Change
		place, found := places[keyOf(change)]
		if found {
			absorb(&changes[place].Change, change)
			changes[place].stored = nil
			continue
		}
		places[keyOf(change)] = count
		if count != i {
			changes[count] = changes[i]
		}
		count++
	}
	return changes[:count]
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

// encodeChange returns a Change as upstream's storage encodes it. It sets the type.
func encodeChange(change *v1alpha1.Change) ([]byte, error) {
	change.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Change"}
	value, err := json.Marshal(change)
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
