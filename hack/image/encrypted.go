// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
)

// encrypted sends nothing in plain HTTP but to this machine. The client of registries would, where a name or an address looks
// like that of a private network and TLS gets no answer, and credentials go along.
type encrypted struct{ http.RoundTripper }

// RoundTrip refuses what could be read on the way.
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
