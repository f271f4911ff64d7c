// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const metricsFile = "../../docs/metrics.md"

// targetLabels are the labels that Prometheus adds.
var targetLabels = []string{"namespace", "job", "pod", "instance", "service", "endpoint", "container"}

// others are the used metrics of Kubernetes and Go, with their used labels. test/docs checks that the programs have these metrics.
var others = map[string][]string{
	"aggregator_unavailable_apiservice":         {"name"},
	"apiserver_request_duration_seconds_bucket": {"verb", "le"},
	"apiserver_request_total":                   {"verb", "code"},
	"leader_election_master_status":             {"name"},
	"process_cpu_seconds_total":                 {},
	"process_resident_memory_bytes":             {},
	"rest_client_requests_total":                {"code"},
}

// metricRow is a row of a table of metrics: the name, the type and the labels.
var metricRow = regexp.MustCompile("(?m)^\\| `(slipstream_\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*)\\|")

// known returns the labels of metrics by the names of the metrics: those of the page, which the server's tests compare with the registered
// ones, and others.
func known(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for name, labels := range others {
		known[name] = labels
	}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		name, labels := row[1], strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
		if row[2] != "histogram" {
			known[name] = labels
			continue
		}
		known[name+"_bucket"] = append(slices.Clone(labels), "le")
		known[name+"_sum"], known[name+"_count"] = labels, labels
	}
	return known
}

// checkExpression checks that every metric in an expression exists, and has the labels by which it is selected and aggregated.
func checkExpression(t *testing.T, known map[string][]string, text string) {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			if _, ok := known[node.Name]; !ok {
				t.Errorf("metric %q does not exist: %s", node.Name, text)
			}
			for _, matcher := range node.LabelMatchers {
				checkLabels(t, known, node.Name, text, matcher.Name)
			}
		case *parser.AggregateExpr:
			for _, selectors := range parser.ExtractSelectors(node.Expr) {
				checkLabels(t, known, nameOf(selectors), text, node.Grouping...)
			}
		}
		return nil
	})
}

func nameOf(selectors []*labels.Matcher) string {
	for _, matcher := range selectors {
		if matcher.Name == labels.MetricName {
			return matcher.Value
		}
	}
	return ""
}

func checkLabels(t *testing.T, known map[string][]string, metric, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if name != labels.MetricName && !slices.Contains(known[metric], name) && !slices.Contains(targetLabels, name) {
			t.Errorf("%s has no label %s: %s", metric, name, text)
		}
	}
}

func TestAlertsUseExistingMetrics(t *testing.T) {
	known := known(t)
	for _, rule := range rules(t) {
		checkExpression(t, known, rule.Expr)
	}
}
