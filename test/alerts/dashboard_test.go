// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

const dashboardFile = "../../charts/slipstream/files/dashboard.json"

// dashboard has the checked fields of Grafana's model.
type dashboard struct {
	ID            *int
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               *datasource
	GridPos                  place
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID, Expr string
		Datasource  *datasource
	}
}

type datasource struct{ Type, UID string }

type place struct{ X, Y, W, H int }

func (p place) overlaps(other place) bool {
	return p.X < other.X+other.W && other.X < p.X+p.W && p.Y < other.Y+other.H && other.Y < p.Y+p.H
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDashboardIsComplete(t *testing.T) {
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Errorf("dashboard must have a uid, a title and a schema version, and no id: %+v", d)
	}
	var variables []string
	for _, variable := range d.Templating.List {
		variables = append(variables, variable.Type+" "+variable.Name)
	}
	if !slices.Equal(variables, []string{"datasource datasource", "query job"}) {
		t.Errorf("variables = %q", variables)
	}
	ids := map[int]string{}
	for i, p := range d.Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("panels %q and %q must have different ids", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.GridPos.W <= 0 || p.GridPos.H <= 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is outside of the grid: %+v", p.Title, p.GridPos)
		}
		for _, other := range d.Panels[:i] {
			if p.GridPos.overlaps(other.GridPos) {
				t.Errorf("panel %q overlaps %q", p.Title, other.Title)
			}
		}
	}
}

func TestPanelsUseExistingMetrics(t *testing.T) {
	known, variable := known(t), datasource{"prometheus", "${datasource}"}
	concrete := strings.NewReplacer("$__rate_interval", "5m", "$job", "slipstream")
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d lacks a title, a description, a unit or a query: %+v", p.ID, p)
		}
		if p.Datasource == nil || *p.Datasource != variable {
			t.Errorf("panel %q does not use the selected data source", p.Title)
		}
		references := map[string]bool{}
		for _, target := range p.Targets {
			if target.Datasource == nil || *target.Datasource != variable {
				t.Errorf("panel %q does not use the selected data source", p.Title)
			}
			if references[target.RefID] || target.RefID == "" {
				t.Errorf("panel %q has two queries with the reference %q", p.Title, target.RefID)
			}
			references[target.RefID] = true
			checkExpression(t, known, concrete.Replace(target.Expr))
		}
	}
}
