// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"strings"
	"testing"
)

// testMonitored has the definitions of the Prometheus operator judge what the chart makes for it.
func testMonitored(t *testing.T, s *stage) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace)
	s.define(t, "monitoring.coreos.com_prometheusrules", "monitoring.coreos.com_servicemonitors")
	const enabled = `metrics={"serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}, "interval": "1m"},
		"prometheusRule": {"enabled": true, "labels": {"release": "prometheus"}}}`
	for name, values := range map[string][]string{
		"own certificates":      {enabled},
		"others' certificates":  {enabled, `tls={"mode": "secret", "secretName": "mine"}`},
		"defaults but switched": {`metrics={"serviceMonitor": {"enabled": true}, "prometheusRule": {"enabled": true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := s.judge(t, s.monitoring(t, values...))
			if err != nil || strings.Count(made, "created (server dry run)") != 2 {
				t.Errorf("%v: %s", err, made)
			}
		})
	}
	t.Run("and what is wrong is refused", func(t *testing.T) {
		good := s.monitoring(t, enabled)
		for wrong, instead := range map[string]string{
			"jobLable:": "jobLabel:", `interval: "minute"`: "interval: 1m", "scheme: ftp": "scheme: https", "expression:": "expr:",
		} {
			bad := strings.Replace(good, instead, wrong, 1)
			if made, err := s.judge(t, bad); err == nil || bad == good {
				t.Errorf("%s is taken: %s", wrong, made)
			}
		}
	})
}

// monitoring is what the chart makes for the Prometheus operator.
func (s *stage) monitoring(t *testing.T, values ...string) string {
	t.Helper()
	return s.rendered(t, append(setting(values), "--show-only=templates/servicemonitor.yaml", "--show-only=templates/prometheusrule.yaml")...)
}

// judge asks the API server whether it would take objects, with no field in them that it does not know.
func (s *stage) judge(t *testing.T, manifests string) (string, error) {
	t.Helper()
	return s.Administrator.Feed(t.Context(), manifests, "create", "--dry-run=server", "--validate=strict", "-f", "-")
}
