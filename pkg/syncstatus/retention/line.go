// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// line is a record in the format of the archive.
type line struct {
	version
	// text ends with a newline.
	text []byte
}

// newLine encodes a record as kubectl prints it.
func newLine(record *v1alpha1.SyncStatus) (line, error) {
	shown := record.DeepCopy()
	shown.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("SyncStatus"))
	shown.ManagedFields = nil
	text, err := json.Marshal(shown)
	if err != nil {
		return line{}, fmt.Errorf("writing SyncStatus %s/%s as JSON: %w", record.Namespace, record.Name, err)
	}
	return line{version: versionOf(record), text: append(text, '\n')}, nil
}

// readVersion returns which record a line contains, and false if it contains none.
func readVersion(text []byte) (version, bool) {
	var record metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &record); err != nil {
		return version{}, false
	}
	return versionOf(&record), true
}

func versionsOf(lines []line) []version {
	versions := make([]version, len(lines))
	for i, line := range lines {
		versions[i] = line.version
	}
	return versions
}
