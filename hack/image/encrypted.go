// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
)

// encrypted rejects plain HTTP requests except to this machine. The registry client would fall back to plain HTTP, with
// credentials, if a name or an address looks like that of a private network and TLS fails.
type encrypted struct{ http.RoundTripper }

// RoundTrip returns an error for a request that could be read in transit.
func (e encrypted) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "https" || isThisMachine(request.URL.Hostname()) {
		return e.RoundTripper.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // Nothing of it has been read.
	}
	return nil, fmt.Errorf("%s://%s is not encrypted: want a registry with TLS, or one on this machine", request.URL.Scheme, request.URL.Host)
}

func isThisMachine(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
