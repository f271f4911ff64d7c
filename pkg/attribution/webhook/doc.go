// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook receives audit events and admission reviews over HTTP and converts them to attribution.Facts.
//
// A forged fact would forge the authorship of commits. Audit events are therefore accepted only from a user with a
// dedicated client certificate. Admission reviews are accepted only from kube-apiserver through the aggregator, or at a
// path with a secret segment. The API server's filter chain authenticates and authorizes each request before a handler of
// this package is called (Endpoints.Install). Plain HTTP is never accepted.
package webhook
