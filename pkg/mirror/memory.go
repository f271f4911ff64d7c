// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// maxFields is the number of fields that a Change lists, maxFieldBytes the length of all their paths: keys of maps may be long.
const (
	maxFields     = 20
	maxFieldBytes = 2048
)

// memory remembers the files of branches, so that a Change can say what differs. What it has forgotten, the Change leaves out.
type memory struct{ files *blobcache.Cache }

// note is what is remembered of an object beside its file.
type note struct {
	// Reason is the last one that was given for a change.
	Reason string `json:"reason,omitempty"`
	// Values are the message authentication codes of the values of a Secret, by their paths.
	Values map[string]string `json:"values,omitempty"`
}

// notedFile returns what is remembered of a change, whose file has the hash blob.
func notedFile(change outbox.Change, blob gitrepo.Hash) blobcache.Noted {
	noted := blobcache.Noted{Blob: blob, Content: change.Content}
	if n := (note{Reason: change.Marks.Reason, Values: change.Marks.Values}); n.Reason != "" || n.Values != nil {
		noted.Note, _ = json.Marshal(n) // Strings and a map of strings.
	}
	if isSecret(change.Object) {
		noted.Content = nil // It may be readable, and if it is encrypted, all of it changes with each value.
	}
	return noted
}

// remember adds files.
func (m memory) remember(files ...blobcache.Noted) { m.files.PutNoted(files...) }

// remembers reports whether a file is remembered.
func (m memory) remembers(blob gitrepo.Hash) bool { return m.files.HasNoted(blob) }

// recall returns a file, of a Secret only the note.
func (m memory) recall(blob gitrepo.Hash) (content []byte, n note, found bool) {
	content, kept, found := m.files.GetNoted(blob)
	if len(kept) > 0 && json.Unmarshal(kept, &n) != nil {
		return nil, note{}, false
	}
	return content, n, found
}

func isSecret(object outbox.Object) bool {
	return object.GroupVersionResource().GroupResource() == secretsResource
}

// describe adds to a Change what differs from the file with the hash before, which is zero if there was no file.
func (m memory) describe(spec *v1alpha1.ChangeSpec, change outbox.Change, before gitrepo.Hash) {
	var content []byte
	var earlier note
	if !before.IsZero() {
		var found bool
		if content, earlier, found = m.recall(before); !found {
			return
		}
	}
	if change.Operation != v1alpha1.OperationDelete && change.Marks.Reason != earlier.Reason {
		spec.Reason = change.Marks.Reason
	}
	if isSecret(change.Object) {
		if earlier.Values != nil && change.Marks.Values != nil {
			spec.Fields, spec.MoreFields = boundedFields(differingKeys(earlier.Values, change.Marks.Values))
		}
		return
	}
	added, removed := manifest.CountLines(content, change.Content)
	spec.Lines = &v1alpha1.ChangedLines{Added: int32(added), Removed: int32(removed)}
	// The file of another object may have been put there in Git.
	if content != nil && change.Content != nil && bytes.HasPrefix(content, identityOf(change.Content)) {
		spec.Fields, spec.MoreFields = boundedFields(manifest.DifferingFields(content, change.Content))
	}
}

// identityOf returns the beginning of an object's file, up to its name and namespace.
func identityOf(file []byte) []byte {
	end := 0
	for line := range bytes.Lines(file) {
		end += len(line)
		if bytes.HasPrefix(line, []byte("  namespace: ")) || bytes.HasPrefix(line, []byte("  name: ")) && !bytes.HasPrefix(file[end:], []byte("  namespace: ")) {
			break
		}
	}
	return file[:end]
}

// boundedFields returns the first of some fields, and the number of the others.
func boundedFields(fields []string) (shown []string, more int32) {
	length, count := 0, 0
	for count < len(fields) && count < maxFields && length+len(fields[count]) <= maxFieldBytes {
		length += len(fields[count])
		count++
	}
	return fields[:count:count], int32(len(fields) - count)
}

// differingKeys returns the keys of two maps whose values differ, sorted.
func differingKeys(a, b map[string]string) []string {
	var keys []string
	all := maps.Clone(a)
	maps.Copy(all, b)
	for key := range all {
		if value, exists := a[key]; !exists || b[key] != value {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
