// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// withDiscretion keeps what requests have read from the cluster out of the log: some look at Secrets.
func withDiscretion(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(logredact.WithoutBodies(r.Context())))
	})
}
