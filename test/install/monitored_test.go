// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"strings"
	"testing"
)

// testMonitored validates the monitoring objects of the chart with the definitions of the Prometheus operator.
func testMonitored(t *testing.T, s *testCluster) {
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
			made, err := s.validate(t, s.monitoring(t, values...))
			if err != nil || strings.Count(made, "created (server dry run)") != 2 {
				t.Errorf("%v: %s", err, made)
			}
		})
	}
	t.Run("invalid objects are rejected", func(t *testing.T) {
		good := s.monitoring(t, enabled)
		for wrong, instead := range map[string]string{
			"jobLable:": "jobLabel:", `interval: "minute"`: "interval: 1m", "scheme: ftp": "scheme: https", "expression:": "expr:",
		} {
			bad := strings.Replace(good, instead, wrong, 1)
			if made, err := s.validate(t, bad); err == nil || bad == good {
				t.Errorf("%s was accepted: %s", wrong, made)
			}
		}
	})
}

// monitoring returns the chart's objects for the Prometheus operator.
func (s *testCluster) monitoring(t *testing.T, values ...string) string {
	t.Helper()
	return s.rendered(t, append(setting(values), "--show-only=templates/servicemonitor.yaml", "--show-only=templates/prometheusrule.yaml")...)
}

// validate validates objects with a dry run and strict field validation.
func (s *testCluster) validate(t *testing.T, manifests string) (string, error) {
	t.Helper()
	return s.Administrator.Feed(t.Context(), manifests, "create", "--dry-run=server", "--validate=strict", "-f", "-")
}
