// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// audited returns the matching events of an audit log, in the order of their requests.
func audited(t *testing.T, path string, wanted func(*auditv1.Event) bool) (events []auditv1.Event) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // The last line may be incomplete.
		}
		if wanted(&event) {
			events = append(events, event)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(events, func(a, b auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	return events
}

// revisionOf returns the catalog revision in the labels of a written object.
func revisionOf(t *testing.T, event *auditv1.Event) int {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(event.ResponseObject.Raw, &object); err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.Atoi(object.Labels[v1alpha1.LabelRevision])
	if err != nil {
		t.Fatalf("%s: object has no valid revision label: %v", event.RequestURI, err)
	}
	return revision
}
