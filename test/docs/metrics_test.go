// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// metricName is that of a metric in an expression of an alert or a dashboard: of ours, of kube-apiserver, or one that
// Kubernetes or Go brings along.
var metricName = regexp.MustCompile(`\b(slipstream_\w+|aggregator_\w+|apiserver_\w+|leader_election_\w+|rest_client_\w+|process_\w+)`)

// wantMetrics checks that the demo's server has every metric that alerts and the dashboard ask for, once all parts of it
// have worked, and kube-apiserver those about APIServices.
func (r *reader) wantMetrics(t *testing.T) {
	t.Helper()
	out, err := r.run(t.Context(), `(. .dev/demo/env
"${KUBECTL}" get --raw /metrics --server="${SERVER_URL}" --insecure-skip-tls-verify
"${KUBECTL}" get --raw /metrics | grep ^aggregator_)`)
	if err != nil {
		t.Fatalf("reading metrics: %v\n%s", err, out)
	}
	there := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\w+`).FindAllString(out, -1) {
		there[line] = true
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(moduleRoot(t), "charts", "slipstream", "files", file))
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(content), -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", file)
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s asks for %s, which neither server has", file, name)
			}
		}
	}
}
