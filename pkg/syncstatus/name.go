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
	// alphabet is the one of names that the API server generates: without vowels it makes no words.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength makes 14 million suffixes.
	suffixLength = 5
	// candidates is how many names a record may have. With 100 000 records of one subject, each of them is taken with a
	// probability of 0.7 %, and all ten with one of 10⁻²¹.
	candidates = 10
)

// Names returns the names that the record of a batch may have, the first choice first. They follow from what the record
// is about, so that whoever records a batch again after an interruption finds what was recorded before.
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
		// A hash takes everything. The length keeps two parts from reading as two others.
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

// editBatch is what the batches of edits begin with.
const editBatch = "generation-"

// EditBatch is the batch of an edit of the spec of a subject, by the generation that the edit has made.
func EditBatch(generation int64) string { return fmt.Sprint(editBatch, generation) }

// IsEdit says whether a batch is that of an edit.
func IsEdit(batch string) bool { return strings.HasPrefix(batch, editBatch) }

// Find returns the record of a batch, or nil and the name that it is to have. Get returns the record of a name, with the API's
// NotFound when there is none. When get has missed a record that took the name a moment ago, the API refuses to write the
// new one over it, because a record's spec never changes.
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

// Labels returns the labels of a record, by which it is found: its subject and its type.
func Labels(spec v1alpha1.SyncStatusSpec) map[string]string {
	subject := v1alpha1.LabelCatalog
	if spec.Subject.Kind == v1alpha1.SubjectEnvironment {
		subject = v1alpha1.LabelEnvironment
	}
	return map[string]string{subject: spec.Subject.Name, v1alpha1.LabelSyncType: string(spec.Type)}
}
