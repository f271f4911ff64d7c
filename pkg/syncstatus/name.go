// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// alphabet is that of the API server's generated names. It has no vowels, so suffixes are not words.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength allows for 14 million suffixes.
	suffixLength = 5
	// candidates is the number of possible names of a record. With 100 000 records of one subject, one of them is taken with a probability
	// of 0.7 %, and all ten with a probability of 10⁻²¹.
	candidates = 10
)

// Names returns the possible names of the record of a batch, in order of preference. They are computed from the spec, so an interrupted
// caller finds the record that it has already written.
func Names(spec v1alpha1.SyncStatusSpec) []string {
	names := make([]string, candidates)
	for i := range names {
		names[i] = spec.Subject.Name + "-" + suffix(spec, i)
	}
	return names
}

func suffix(spec v1alpha1.SyncStatusSpec, choice int) string {
	hash := sha256.New()
	for _, part := range []string{string(spec.Type), string(spec.Subject.Kind), string(spec.Subject.UID), spec.Batch} {
		// Writes to a hash do not fail. The length makes the concatenation of the parts unambiguous.
		_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
		_, _ = io.WriteString(hash, part)
	}
	_ = binary.Write(hash, binary.BigEndian, uint64(choice))
	number := binary.BigEndian.Uint64(hash.Sum(nil))
	letters := make([]byte, suffixLength)
	for i := range letters {
		letters[i] = alphabet[number%uint64(len(alphabet))]
		number /= uint64(len(alphabet))
	}
	return string(letters)
}

// editBatch is the prefix of the batches of edits.
const editBatch = "generation-"

// EditBatch returns the batch of an edit of the spec of a subject, given the generation of the edit.
func EditBatch(generation int64) string { return fmt.Sprint(editBatch, generation) }

// IsEdit reports whether a batch is that of an edit.
func IsEdit(batch string) bool { return strings.HasPrefix(batch, editBatch) }

// Find returns the record of a batch, or nil and the name for a new record. get returns the record with a name, or the API's NotFound. If
// get misses a record that was just created with the same name, the API rejects the new record, because the spec of a record is immutable.
func Find(
	spec v1alpha1.SyncStatusSpec, get func(name string) (*v1alpha1.SyncStatus, error),
) (found *v1alpha1.SyncStatus, name string, err error) {
	for _, candidate := range Names(spec) {
		record, err := get(candidate)
		switch {
		case apierrors.IsNotFound(err):
			if name == "" {
				name = candidate
			}
		case err != nil:
			return nil, "", fmt.Errorf("looking for the SyncStatus of batch %s: %w", spec.Batch, err)
		case record.Spec == spec:
			return record, record.Name, nil
		}
	}
	if name == "" {
		return nil, "", fmt.Errorf("all %d names for the SyncStatus of batch %s of %s %s are taken",
			candidates, spec.Batch, spec.Subject.Kind, spec.Subject.Name)
	}
	return nil, name, nil
}

// Labels returns the labels of a record: its subject and its type.
func Labels(spec v1alpha1.SyncStatusSpec) map[string]string {
	subject := v1alpha1.LabelCatalog
	if spec.Subject.Kind == v1alpha1.SubjectEnvironment {
		subject = v1alpha1.LabelEnvironment
	}
	return map[string]string{subject: spec.Subject.Name, v1alpha1.LabelSyncType: string(spec.Type)}
}
