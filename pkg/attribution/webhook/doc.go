// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook answers what API servers may tell of who made a change, and who may tell it: it turns audit events and
// admission reviews into attribution.Facts, and takes both over HTTP.
//
// A forged fact forges history. Audit events are therefore taken from one user with a certificate of its own; admission
// reviews from kube-apiserver itself through the aggregator, or at a path that is a secret. The filters of the API
// server do all of that before a handler here is called (Endpoints.Install), and none of it over plain HTTP.
package webhook
