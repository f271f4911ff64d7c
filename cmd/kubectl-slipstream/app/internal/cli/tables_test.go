// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// pagedTables serves pages of rows, each named by its page and second of creation.
func pagedTables(t *testing.T, pages ...[]int) (*cli.Tables, *int) {
	t.Helper()
	read := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		page := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page) // The first one has no token.
		read++
		next, rows := "", []any{}
		if page+1 < len(pages) {
			next = fmt.Sprint(page + 1)
		}
		limit := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		for _, second := range pages[page][:min(limit, len(pages[page]))] {
			name := fmt.Sprintf("%d-%02d", page, second)
			rows = append(rows, map[string]any{"cells": []any{name, nil, "<none>", 1_000_000}, "object": map[string]any{"metadata": map[string]any{
				"namespace": "teams", "name": name, "creationTimestamp": fmt.Sprintf("2026-05-04T12:00:%02dZ", second),
			}}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{"continue": next, "resourceVersion": fmt.Sprint(page + 7)},
			"columnDefinitions": []any{map[string]any{"name": "Name"}}, "rows": rows,
		})
	}))
	t.Cleanup(server.Close)
	config, nowhere := genericclioptions.NewConfigFlags(true), os.DevNull
	config.APIServer, config.KubeConfig = &server.URL, &nowhere
	found, err := cli.NewTables(config)
	if err != nil {
		t.Fatal(err)
	}
	return found, &read
}

// TestListOfTables reads all pages, or those that have the newest objects.
func TestListOfTables(t *testing.T) {
	for name, test := range map[string]struct {
		newest int
		want   string
		pages  int
	}{
		"all":                      {0, "0-09 0-05 1-07 1-02 2-08", 3},
		"newest":                   {2, "0-09 0-05", 1},
		"newest, on several pages": {3, "0-09 0-05 1-07", 2},
		"newer than what exists":   {9, "0-09 0-05 1-07 1-02 2-08", 3},
	} {
		tables, read := pagedTables(t, []int{9, 5}, []int{7, 2}, []int{8})
		page, err := tables.List(t.Context(), cli.Selection{Resource: "changes", Newest: test.newest})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range page.Rows {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != test.want || *read != test.pages {
			t.Errorf("%s: %s in %d pages, want %s in %d", name, got, *read, test.want, test.pages)
		}
		if page.Version != "7" || page.Continue != "" && test.pages == 3 || len(page.Columns) != 1 {
			t.Errorf("%s: the version is %s, the next page %q, the columns are %v", name, page.Version, page.Continue, page.Columns)
		}
	}
}

// TestCells checks the texts of cells.
func TestCells(t *testing.T) {
	tables, _ := pagedTables(t, []int{1})
	page, err := tables.Page(t.Context(), cli.Selection{Resource: "changes"}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(page.Rows[0].Cells, "|"); got != "0-01|||1000000" {
		t.Errorf("the cells are %s", got)
	}
}
