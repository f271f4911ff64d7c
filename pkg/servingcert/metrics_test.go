// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert_test

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// The server tells when kube-apiserver does not send it requests for its kinds, and that it does so again.
func TestRegistrationIsTold(t *testing.T) {
	const text = `# HELP slipstream_serving_unregistered [ALPHA] 1 while the cluster does not pass requests for the kinds on to this server, by reason: absent, custom_resources or another_service.
# TYPE slipstream_serving_unregistered gauge
slipstream_serving_unregistered{reason="absent"} 0
slipstream_serving_unregistered{reason="another_service"} 0
slipstream_serving_unregistered{reason="custom_resources"} 0
`
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
		if err := r.keeper.RunOnce(quiet(t)); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(text, `{reason="`+step.reason+`"} 0`, `{reason="`+step.reason+`"} 1`, 1)
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "slipstream_serving_unregistered"); err != nil {
			t.Errorf("reason %q: %v", step.reason, err)
		}
	}
}
