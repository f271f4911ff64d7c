// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadmeOfTheChart checks that the table in the README of the chart has the values.
func TestReadmeOfTheChart(t *testing.T) {
	const chart = "../../charts/slipstream"
	got, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := readme(chart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run make manifests (- now, + in the README):\n%s", diff)
	}
}

func TestTableOfValues(t *testing.T) {
	chart := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(chart, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("values.yaml", `# The chart.

# Where it is:
# a | b.
place:
  # Its name.
  name: ""
  size: {cpu: 1}
# A list.
list: [a, b]
empty: {}
`)
	write("README.md", "Text.\n"+tableBegins+"old\n"+tableEnds+"End.\n")
	got, err := readme(chart)
	if err != nil {
		t.Fatal(err)
	}
	want := "Text.\n" + tableBegins + `| value | default | description |
|---|---|---|
| ~place~ |  | Where it is: a \| b. |
| ~place.name~ | ~""~ | Its name. |
| ~place.size~ | ~{"cpu":1}~ |  |
| ~list~ | ~["a","b"]~ | A list. |
| ~empty~ | ~{}~ |  |
` + tableEnds + "End.\n"
	if diff := cmp.Diff(strings.ReplaceAll(want, "~", "`"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write("README.md", tableEnds+tableBegins)
	if _, err := readme(chart); err == nil {
		t.Error("a README without a place for the values was accepted")
	}
}
