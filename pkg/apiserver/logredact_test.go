// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// Clients log the bodies of answers from level 8.
func TestRequestsLogNothingThatTheyRead(t *testing.T) {
	var summaries, bodies bool
	handler := withRedactedLogs(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		logger := klog.FromContext(r.Context())
		summaries, bodies = logger.V(6).Enabled(), logger.V(8).Enabled()
	}))
	loud := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(10)))
	request := httptest.NewRequestWithContext(klog.NewContext(t.Context(), loud), http.MethodGet, "/", http.NoBody)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if !summaries || bodies {
		t.Errorf("logs requests: %v, bodies: %v", summaries, bodies)
	}
}
