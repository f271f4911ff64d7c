// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

// TestRegistrationMetric checks that a metric shows whether kube-apiserver sends requests for the server's kinds to it.
func TestRegistrationMetric(t *testing.T) {
	c := newCluster(t)
	r := c.start(t, nil)
	for _, step := range []struct {
		reason       string
		registration object
	}{
		{"", apiService(nil)},
		{"custom_resources", apiService(object{"service": nil})},
		{"another_service", apiService(object{"service": object{"namespace": service.Namespace, "name": "other"}})},
		{"absent", nil},
		{"", apiService(nil)},
	} {
		c.put(t, apiServicePath, step.registration)
		if err := r.controller.RunOnce(quiet(t)); err != nil {
			t.Fatal(err)
		}
		values := metrictest.Values(t)
		for _, reason := range []string{"absent", "another_service", "custom_resources"} {
			if got, ok := values["serving_unregistered "+reason]; !ok || (got == 1) != (reason == step.reason) {
				t.Errorf("%s is %v while the reason is %q", reason, got, step.reason)
			}
		}
	}
}
