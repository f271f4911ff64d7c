// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

const metricsPage = "../../../docs/metrics.md"

// TestMetricsAreDocumented checks that docs/metrics.md has exactly the server's own metrics, with their labels.
func TestMetricsAreDocumented(t *testing.T) {
	ofStores := metrics.NewKubeRegistry()
	ofStores.CustomMustRegister(bolt.NewCollector())
	registered := described(t, legacyregistry.Registerer(), ofStores.Registerer())
	if diff := cmp.Diff(registered, documented(t)); diff != "" {
		t.Errorf("docs/metrics.md differs from the registered metrics (-registered +documented):\n%s", diff)
	}
}

// descLine matches the text of a description of one of the server's own metrics.
var descLine = regexp.MustCompile(`fqName: "(slipstream_\w+)".* variableLabels: {([^}]*)}`)

// described returns the labels of the metrics of registries, by their names.
func described(t *testing.T, registries ...prometheus.Registerer) map[string]string {
	t.Helper()
	labels := map[string]string{}
	for _, registry := range registries {
		collector, ok := registry.(prometheus.Collector)
		if !ok {
			t.Fatalf("%T does not describe its metrics", registry)
		}
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			collector.Describe(descs)
		}()
		for desc := range descs {
			if found := descLine.FindStringSubmatch(desc.String()); found != nil {
				labels[found[1]] = found[2]
			}
		}
	}
	return labels
}

// metricRow is a row of a table of metrics: the name, the type and the labels.
var metricRow = regexp.MustCompile("^\\| `(slipstream_\\w+)` \\| (counter|gauge|histogram) \\| ([^|]*)\\| \\S")

// documented returns the labels of the metrics on the page, by their names.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if found := metricRow.FindStringSubmatch(line); found != nil {
			labels[found[1]] = strings.NewReplacer("`", "", " ", "").Replace(found[3])
			if counts := strings.HasSuffix(found[1], "_total"); counts != (found[2] == "counter") {
				t.Errorf("the type of %s is no %s", found[1], found[2])
			}
		}
	}
	return labels
}
