// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// many returns a batch with numbers of upserted and deleted definitions.
func many(upserts, deletes int) item.Batch {
	sent := batch(item.CustomResourceDefinition, nil, nil)
	for at := range upserts {
		sent.Upserts = append(sent.Upserts, item.Item{Key: definition(fmt.Sprintf("New%d", at), fmt.Sprintf("news%d.example.com", at))})
	}
	for at := range deletes {
		sent.Deletes = append(sent.Deletes, definition(fmt.Sprintf("Old%d", at), fmt.Sprintf("olds%d.example.com", at)))
	}
	return sent
}

func TestClusterWhispererReceives200DefinitionsAtOnce(t *testing.T) {
	for _, c := range []struct{ upserts, deletes, calls int }{
		{1, 0, 1}, {200, 0, 1}, {201, 0, 2}, {0, 201, 2}, {150, 50, 1}, {150, 51, 2}, {1000, 0, 5}, {500, 500, 5},
	} {
		made := calls(t, v1alpha1.PipelineFormatClusterWhisperer, many(c.upserts, c.deletes))
		if len(made) != c.calls {
			t.Errorf("%d upserts and %d deletes: %d calls, want %d", c.upserts, c.deletes, len(made), c.calls)
		}
		sent, upserted := 0, false
		for _, call := range made {
			var payload struct{ Upserts, Deletes []string }
			if err := json.Unmarshal(call.Body, &payload); err != nil {
				t.Fatal(err)
			}
			count := len(payload.Upserts) + len(payload.Deletes)
			if count > 200 || count != len(call.Keys) {
				t.Errorf("call has %d definitions and %d keys", count, len(call.Keys))
			}
			if upserted && len(payload.Deletes) > 0 {
				t.Error("deletion is sent after an upsert")
			}
			upserted = upserted || len(payload.Upserts) > 0
			sent += count
		}
		if sent != c.upserts+c.deletes {
			t.Errorf("%d definitions in all calls, want %d", sent, c.upserts+c.deletes)
		}
	}
}

func TestDotAIScans200DefinitionsAtOnceAndDeletesEachAlone(t *testing.T) {
	made := calls(t, v1alpha1.PipelineFormatDotAI, many(401, 3))
	var operations []string
	for _, call := range made {
		var payload struct{ Operation, ResourceList string }
		if err := json.Unmarshal(call.Body, &payload); err != nil {
			t.Fatal(err)
		}
		operations = append(operations, fmt.Sprintf("%s %d", payload.Operation, len(strings.Split(payload.ResourceList, ","))))
	}
	want := "delete 1, delete 1, delete 1, scan 200, scan 200, scan 1"
	if got := strings.Join(operations, ", "); got != want {
		t.Errorf("calls = %s, want %s", got, want)
	}
}

// TestAReplacedDefinitionIsNotDeleted checks that a name that now identifies another definition is not deleted: consumers that only know
// the name would lose it.
func TestAReplacedDefinitionIsNotDeleted(t *testing.T) {
	replaced := batch(item.CustomResourceDefinition,
		[]item.Item{{Key: definition("Widget", "widgets.example.com")}},
		[]item.Key{definition("OldWidget", "widgets.example.com")})
	made := calls(t, v1alpha1.PipelineFormatClusterWhisperer, replaced)
	want := `{"upserts":["widgets.example.com"],"deletes":[]}`
	if len(made) != 1 || string(made[0].Body) != want || len(made[0].Keys) != 2 {
		t.Errorf("calls =\n%s\nwant one of %s, with both keys", dump(made), want)
	}

	plural := batch(item.CustomResourceDefinition,
		[]item.Item{{Key: definition("Widget", "widgetes.example.com")}},
		[]item.Key{definition("Widget", "widgets.example.com")})
	made = calls(t, v1alpha1.PipelineFormatDotAI, plural)
	if len(made) != 1 || !strings.Contains(string(made[0].Body), `"scan"`) || len(made[0].Keys) != 2 {
		t.Errorf("calls =\n%s\nwant one scan, with both keys", dump(made))
	}
}
