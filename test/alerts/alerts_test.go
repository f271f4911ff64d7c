// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts tests when the alerting rules fire, and that the rules and the dashboard use existing metrics.
package alerts

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	rulesFile    = "../../charts/slipstream/files/alerts.yaml"
	runbooksFile = "../../docs/alerts.md"
	runbooksURL  = "https://github.com/configbutler/slipstream/blob/main/docs/alerts.md#"
)

// alertCase is a test case: whether an alert fires with the series.
type alertCase struct {
	name, alert string
	// series are in the notation of Prometheus, with one value for each step from the start.
	series []string
	fires  bool
	// step is the interval of the values, a minute if zero.
	step time.Duration
}

const (
	steady  = "0+6x30"
	resting = "6+0x30"
	// stopped is the counter of a source that becomes silent after five minutes.
	stopped = "0+6x5 30+0x25"
)

func allCases() []alertCase {
	return slices.Concat(
		apiCases(), mirrorCases(), attributionCases(), catalogCases(), environmentCases(), peopleCases(), pipelineCases(), notificationCases(),
		storeCases(),
	)
}

// rules returns the alerting rules by their names.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	return found
}

func TestAlertsFire(t *testing.T) {
	rules := rules(t)
	for _, test := range allCases() {
		t.Run(test.name, func(t *testing.T) {
			rule, ok := rules[test.alert]
			if !ok {
				t.Fatalf("alert %s does not exist", test.alert)
			}
			if fires := fires(t, rule, test); fires != test.fires {
				t.Errorf("%s fires: %v, want %v", test.alert, fires, test.fires)
			}
		})
	}
}

// fires reports whether a rule is true after 28 steps.
func fires(t *testing.T, rule rulefmt.Rule, test alertCase) bool {
	t.Helper()
	step := test.step
	if step == 0 {
		step = time.Minute
	}
	storage := promqltest.LoadedStorage(t, "load "+step.String()+"\n  "+strings.Join(test.series, "\n  "))
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, time.Unix(0, 0).Add(28*step))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	vector, ok := result.Value.(promql.Vector)
	if result.Err != nil || !ok {
		t.Fatalf("query returned %v, %v", result.Value, result.Err)
	}
	return len(vector) > 0
}

func TestAlertsAreTestedAndDocumented(t *testing.T) {
	runbooks, err := os.ReadFile(runbooksFile)
	if err != nil {
		t.Fatal(err)
	}
	cases, rules := allCases(), rules(t)
	for name, rule := range rules {
		if !strings.Contains(string(runbooks), "\n## "+name+"\n") {
			t.Errorf("docs/alerts.md has no section about %s", name)
		}
		for _, fires := range []bool{true, false} {
			if !slices.ContainsFunc(cases, func(c alertCase) bool { return c.alert == name && c.fires == fires }) {
				t.Errorf("no test case for %s with fires = %v", name, fires)
			}
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", name)
		}
		if want := runbooksURL + strings.ToLower(name); rule.Annotations["runbook_url"] != want {
			t.Errorf("runbook_url of %s = %q, want %s", name, rule.Annotations["runbook_url"], want)
		}
		if severity := rule.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
			t.Errorf("severity of %s = %q", name, severity)
		}
	}
	for line := range strings.Lines(string(runbooks)) {
		heading, ok := strings.CutPrefix(strings.TrimSpace(line), "## Slipstream")
		if _, exists := rules["Slipstream"+heading]; ok && !exists {
			t.Errorf("docs/alerts.md has a section about Slipstream%s, which does not exist", heading)
		}
	}
}
