// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access answers what somebody who makes the server do something must be allowed to do by themselves.
//
// The server reads and writes the cluster with an account of its own, which may do more than the people who tell it what to
// do. Each of our kinds that makes it do something has a function here that lists the permissions which that takes, each with
// what it is for and what to do without it. Nothing is asked of a cluster to make the list.
//
// Missing asks an authorizer for the caller of a request. Standing asks the cluster for whoever answers for work that goes on
// without a caller.
package access
