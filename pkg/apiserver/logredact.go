// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// withRedactedLogs keeps response bodies that requests read from the cluster, including Secrets, out of the log.
func withRedactedLogs(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(logredact.WithoutBodies(r.Context())))
	})
}
