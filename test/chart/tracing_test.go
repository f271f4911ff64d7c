// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const tracingFlag = "--tracing-config-file=/etc/slipstream/tracing/tracing.yaml"

// Traces are off by default. With an endpoint, the server reads a configuration with it, and starts again when it changes.
func TestTracing(t *testing.T) {
	if slices.Contains(arguments(t, "{}"), tracingFlag) || len(among[*corev1.ConfigMap](t, objects(t, "{}"), "slipstream-tracing")) > 0 {
		t.Error("traces are configured by default")
	}
	const values = `{tracing: {endpoint: "collector.observability.svc:4317", samplingRatePerMillion: 1000000}}`
	all := objects(t, values)
	deployment := find[*appsv1.Deployment](t, all, "slipstream").Spec.Template
	if !slices.Contains(deployment.Spec.Containers[0].Args, tracingFlag) {
		t.Errorf("arguments = %q", deployment.Spec.Containers[0].Args)
	}
	mounted := func(m corev1.VolumeMount) bool {
		return m.Name == "tracing" && m.MountPath == "/etc/slipstream/tracing" && m.ReadOnly
	}
	volume := func(v corev1.Volume) bool { return v.Name == "tracing" && v.ConfigMap.Name == "slipstream-tracing" }
	if !slices.ContainsFunc(deployment.Spec.Containers[0].VolumeMounts, mounted) || !slices.ContainsFunc(deployment.Spec.Volumes, volume) {
		t.Error("the configuration is not mounted")
	}
	const want = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n" +
		"endpoint: \"collector.observability.svc:4317\"\nsamplingRatePerMillion: 1000000\n"
	if got := find[*corev1.ConfigMap](t, all, "slipstream-tracing").Data["tracing.yaml"]; got != want {
		t.Errorf("configuration:\n%s", got)
	}
	const annotation = "checksum/tracing"
	other := find[*appsv1.Deployment](t, objects(t, `{tracing: {endpoint: "collector:4317"}}`), "slipstream").Spec.Template
	if before, after := deployment.Annotations[annotation], other.Annotations[annotation]; before == "" || before == after {
		t.Errorf("%s is %q, with another endpoint %q", annotation, before, after)
	}
}
