// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas tests several replicas of the server: the leader ends during changes of everything that it works on, and the replicas
// are restarted one after the other while clients use the API.
package replicas
