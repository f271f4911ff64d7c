// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxytest has proxies on this host: HTTP and HTTPS proxies with CONNECT, and SOCKS5 proxies (RFC 1928, RFC 1929). They
// can require credentials, and fail as proxies do.
package proxytest
