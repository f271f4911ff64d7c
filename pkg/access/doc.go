// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access lists the permissions that users need for what the server does on their behalf, and checks whether users have them.
//
// The server reads and writes the cluster with its own account, which may have more permissions than the users of its kinds. For each kind
// that makes the server act, a function returns the permissions that the user needs, each with its cause and a remedy. These functions send
// no requests.
//
// Missing checks permissions for the user of a request with an authorizer. A Reviewer checks them for a Holder, the user or account on
// whose behalf controllers work while no request is served.
package access
