// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// audited returns the matching events of an audit log.
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
	return events
}
