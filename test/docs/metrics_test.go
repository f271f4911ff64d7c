// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// metricName matches the names of metrics in expressions of alerts and the dashboard: of the server, of kube-apiserver, and of the
// libraries of Kubernetes and Go.
var metricName = regexp.MustCompile(`\b(slipstream_\w+|aggregator_\w+|apiserver_\w+|leader_election_\w+|rest_client_\w+|process_\w+)`)

// wantMetrics checks that the demo's server and kube-apiserver have every metric of the alerts and the dashboard after the demo.
func (r *reader) wantMetrics(t *testing.T) {
	t.Helper()
	out, err := r.run(t.Context(), `(. .dev/demo/env
"${KUBECTL}" get --raw /metrics --server="${SERVER_URL}" --insecure-skip-tls-verify
"${KUBECTL}" get --raw /metrics | grep ^aggregator_)`)
	if err != nil {
		t.Fatalf("read metrics: %v\n%s", err, out)
	}
	served := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^\w+`).FindAllString(out, -1) {
		served[line] = true
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(moduleRoot(t), "charts", "slipstream", "files", file))
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(content), -1)
		if len(names) == 0 {
			t.Errorf("%s uses no metric", file)
		}
		for _, name := range names {
			if !served[name] {
				t.Errorf("%s uses %s, which no server has", file, name)
			}
		}
	}
}
