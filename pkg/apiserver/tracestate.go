// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "net/http"

// withoutTraceState removes the headers of a trace in which a caller can put any text. Upstream exports tracestate, and its clients would
// send both with the requests to kube-apiserver that serve this one. traceparent has only IDs.
func withoutTraceState(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Tracestate")
		r.Header.Del("Baggage")
		handler.ServeHTTP(w, r)
	})
}
