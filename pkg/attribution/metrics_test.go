// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"

	"k8s.io/component-base/metrics/testutil"
)

func contradictionsSoFar(t *testing.T) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(contradictions.WithLabelValues(""))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
