// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recently is the maximum age of a field manager's entry to count as the author of a current change.
const recently = 10 * time.Second

// managerOf returns the field manager that last wrote an object, or an empty string if uncertain. It reads the
// unstructured content directly: the accessors would copy all fields of all managers.
func managerOf(object *unstructured.Unstructured, now time.Time) string {
	newest, unique, alone := newestEntry(object)
	switch {
	case newest.manager == "" || alone:
		return newest.manager
	case !unique:
		return ""
	}
	written, err := time.Parse(time.RFC3339, newest.time)
	if err != nil || now.Sub(written).Abs() > recently {
		return ""
	}
	return newest.manager
}

// managedEntry is one entry of an object's managedFields. Times are RFC 3339 in UTC with seconds, so they sort as
// strings.
type managedEntry struct{ manager, time, subresource string }

// newestEntry returns the newest entry, ignoring the status. unique is set if no other manager has an entry of that time,
// alone if there is no other manager.
func newestEntry(object *unstructured.Unstructured) (newest managedEntry, unique, alone bool) {
	unique, alone = true, true
	for entry := range managedEntries(object) {
		other := newest.manager != "" && entry.manager != newest.manager
		switch {
		case entry.subresource == "status":
			continue
		case newest.manager == "" || entry.time > newest.time:
			newest, unique = entry, true
		case other && entry.time == newest.time:
			unique = false
		}
		alone = alone && !other
	}
	return newest, unique, alone
}

// writtenWithin reports whether an entry was written within a period.
func writtenWithin(object *unstructured.Unstructured, from, to time.Time) bool {
	for entry := range managedEntries(object) {
		written, err := time.Parse(time.RFC3339, entry.time)
		if err == nil && !written.Before(from) && !written.After(to) {
			return true
		}
	}
	return false
}

func managedEntries(object *unstructured.Unstructured) func(yield func(managedEntry) bool) {
	return func(yield func(managedEntry) bool) {
		metadata, _ := object.Object["metadata"].(map[string]any)
		entries, _ := metadata["managedFields"].([]any)
		for _, each := range entries {
			entry, _ := each.(map[string]any)
			manager, _ := entry["manager"].(string)
			written, _ := entry["time"].(string)
			subresource, _ := entry["subresource"].(string)
			if !yield(managedEntry{manager, written, subresource}) {
				return
			}
		}
	}
}
