// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts answers whether the alerting rules fire when they should, and only then.
package alerts

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const (
	rulesFile    = "../../artifacts/alerts/slipstream.yaml"
	runbooksFile = "../../docs/alerts.md"
)

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

// Series are in the notation of Prometheus: a value a minute, from the start, for 30 minutes.
const (
	steady  = "0+6x30"
	resting = "6+0x30"
	// stopped is that of a source that goes silent after five minutes.
	stopped = "0+6x5 30+0x25"
)

func TestAlertsFire(t *testing.T) {
	const (
		audit   = `slipstream_audit_events_total{outcome="recorded"} `
		hits    = `slipstream_enrich_hits_total{controller="mirror",signal="audit"} `
		misses  = `slipstream_enrich_misses_total{controller="mirror"} `
		lag     = `slipstream_attribution_lag_seconds{controller="mirror",signal="audit"} `
		queue   = `slipstream_repo_branch_queue_depth `
		pushes  = `slipstream_commit_batches_total `
		refused = `slipstream_attribution_refusals_total{endpoint="audit",reason="unauthorized"} `
	)
	expectAlerts(t, []alertCase{
		{"audit went silent while objects change", "SlipstreamAuditSilent", []string{audit + stopped, misses + steady}, true},
		{"audit went silent and admission tells", "SlipstreamAuditSilent", []string{audit + stopped, hits + steady}, true},
		{"audit speaks", "SlipstreamAuditSilent", []string{audit + steady, hits + steady}, false},
		{"nothing changes", "SlipstreamAuditSilent", []string{audit + stopped, hits + resting}, false},
		{"audit was never set up", "SlipstreamAuditSilent", []string{misses + steady}, false},
		{"audit is late", "SlipstreamAuditLate", []string{lag + "30+0x30"}, true},
		{"audit is in time", "SlipstreamAuditLate", []string{lag + "0.3+0x30"}, false},
		{"pushes fail", "SlipstreamPushFailing", []string{queue + "5+0x30", pushes + stopped}, true},
		{"no push has ever succeeded", "SlipstreamPushFailing", []string{queue + "5+0x30"}, true},
		{"pushes keep pace", "SlipstreamPushFailing", []string{queue + "5+0x30", pushes + steady}, false},
		{"nothing waits", "SlipstreamPushFailing", []string{queue + "0+0x30", pushes + resting}, false},
		{"a report is refused", "SlipstreamReportsRefused", []string{refused + steady}, true},
		{"no report is refused", "SlipstreamReportsRefused", []string{refused + resting}, false},
	})
}

func TestAlertsOfCatalogsFire(t *testing.T) {
	const (
		waiting     = `slipstream_catalog_intake_objects `
		capacity    = `slipstream_catalog_intake_capacity 10000+0x30`
		blocked     = `slipstream_catalog_intake_blocked `
		failures    = `slipstream_catalog_failures_total{reason="Transient"} `
		patches     = `slipstream_catalog_failures_total{reason="PatchFailed"} `
		applied     = `slipstream_catalog_records_total{state="AutoApplied"} `
		awaiting    = `slipstream_catalog_records_awaiting `
		unreachable = `slipstream_catalog_sources_unreachable `
		swept       = `slipstream_retention_sweeps_total{result="success"} `
		notSwept    = `slipstream_retention_sweeps_total{result="failure"} `
	)
	expectAlerts(t, []alertCase{
		{"the intake is filling", "SlipstreamCatalogBacklog", []string{waiting + "7000+0x30", capacity}, true},
		{"the intake has room", "SlipstreamCatalogBacklog", []string{waiting + "6999+0x30", capacity}, false},
		{"no replica leads", "SlipstreamCatalogBacklog", []string{waiting + "0+0x30", `slipstream_catalog_intake_capacity 0+0x30`}, false},
		{"a replica leads", "SlipstreamCatalogBacklog", []string{
			`slipstream_catalog_intake_objects{pod="a"} 8000+0x30`, `slipstream_catalog_intake_capacity{pod="a"} 10000+0x30`,
			`slipstream_catalog_intake_objects{pod="b"} 0+0x30`, `slipstream_catalog_intake_capacity{pod="b"} 10000+0x30`,
		}, true},
		{"the store is full", "SlipstreamCatalogChangesNotKept", []string{blocked + "1+0x30"}, true},
		{"the store has room", "SlipstreamCatalogChangesNotKept", []string{blocked + "0+0x30"}, false},
		{"the source cannot be read", "SlipstreamCatalogsFailing", []string{failures + "0+1x30", applied + resting}, true},
		{"half fails", "SlipstreamCatalogsFailing", []string{failures + steady, applied + steady}, true},
		{"some fails among much", "SlipstreamCatalogsFailing", []string{failures + "0+1x30", applied + steady}, false},
		{"one patch does not fit", "SlipstreamCatalogsFailing", []string{patches + "0+0x14 1+1x4 5+0x11", applied + resting}, false},
		{"a record waits for a person", "SlipstreamCatalogNeedsSomeone", []string{awaiting + "1+0x30"}, true},
		{"no record waits for a person", "SlipstreamCatalogNeedsSomeone", []string{awaiting + "0+0x30"}, false},
		{"a source is gone", "SlipstreamCatalogSourceUnreachable", []string{unreachable + "1+0x30"}, true},
		{"all sources are there", "SlipstreamCatalogSourceUnreachable", []string{unreachable + "0+0x30"}, false},
		{"records cannot be archived", "SlipstreamRetentionFailing", []string{notSwept + steady, swept + resting}, true},
		{"a sweep is made after one that failed", "SlipstreamRetentionFailing", []string{notSwept + steady, swept + steady}, false},
		{"sweeps are made", "SlipstreamRetentionFailing", []string{notSwept + "0+0x30", swept + steady}, false},
	})
}

func TestAlertsOfPipelinesFire(t *testing.T) {
	const (
		oldest   = `slipstream_pipeline_oldest_pending_seconds{pipeline="inventory",sink="search"} `
		rejected = `slipstream_pipeline_rejected_objects{pipeline="inventory",sink="search"} `
	)
	expectAlerts(t, []alertCase{
		{"a sink is down", "SlipstreamPipelineSinkBehind", []string{oldest + "0+60x30"}, true},
		{"a sink is slow", "SlipstreamPipelineSinkBehind", []string{oldest + "600+0x30"}, false},
		{"a sink is well, another is not", "SlipstreamPipelineSinkBehind", []string{
			oldest + "0+0x30", `slipstream_pipeline_oldest_pending_seconds{pipeline="inventory",sink="audit"} 1000+0x30`,
		}, true},
		{"a sink refuses", "SlipstreamPipelineObjectsRejected", []string{rejected + "2+0x30"}, true},
		{"a sink takes everything", "SlipstreamPipelineObjectsRejected", []string{rejected + "0+0x30"}, false},
	})
}

// alertCase says whether an alert fires with some series.
type alertCase struct {
	name, alert string
	series      []string
	fires       bool
}

func expectAlerts(t *testing.T, cases []alertCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			rule, ok := rules(t)[test.alert]
			if !ok {
				t.Fatalf("there is no alert %s", test.alert)
			}
			if fires := fires(t, rule, test.series); fires != test.fires {
				t.Errorf("%s fires: %v, want %v", test.alert, fires, test.fires)
			}
		})
	}
}

// fires says whether a rule holds after 28 minutes.
func fires(t *testing.T, rule rulefmt.Rule, series []string) bool {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  "))
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, time.Unix(0, 0).Add(28*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	vector, ok := result.Value.(promql.Vector)
	if result.Err != nil || !ok {
		t.Fatalf("%v, %v", result.Value, result.Err)
	}
	return len(vector) > 0
}

// TestAlertsAskForMetricsThatExist looks for the metrics' names in the code that registers them.
func TestAlertsAskForMetricsThatExist(t *testing.T) {
	code := source(t)
	for name, rule := range rules(t) {
		expression, err := parser.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, selectors := range parser.ExtractSelectors(expression) {
			for _, matcher := range selectors {
				short, ours := strings.CutPrefix(matcher.Value, "slipstream_")
				if matcher.Name == "__name__" && (!ours || !isRegistered(code, short)) {
					t.Errorf("%s asks for %s, which no package registers", name, matcher.Value)
				}
			}
		}
	}
}

// isRegistered says whether code registers a metric of a name. Those of intakes have the name of their purpose before their own.
func isRegistered(code, name string) bool {
	purpose, own, isIntake := strings.Cut(name, "_intake_")
	if isIntake {
		return strings.Contains(code, fmt.Sprintf("intake.NewMetrics(%q, ", purpose)) && strings.Contains(code, fmt.Sprintf("%q", own))
	}
	return strings.Contains(code, fmt.Sprintf("%q", name))
}

// source returns the code of the packages, without their tests.
func source(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir("../../pkg", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		code.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}

func TestAlertsAreTestedAndExplained(t *testing.T) {
	runbooks, err := os.ReadFile(runbooksFile)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("alerts_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules(t) {
		if !strings.Contains(string(runbooks), "\n## "+name+"\n") {
			t.Errorf("docs/alerts.md does not say what to do about %s", name)
		}
		if !strings.Contains(string(tests), fmt.Sprintf("%q, []string", name)) {
			t.Errorf("no test shows when %s fires", name)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, a description or a severity", name)
		}
	}
}
