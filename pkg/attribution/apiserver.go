// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// IsAPIServer reports whether a user is an API server that sends a request to itself: kube-apiserver, when the request
// comes through the aggregator, or this server by its loopback client. Only a request that names that user and that group
// passes for one: who may impersonate both may do anything as anybody, and needs no forged request.
func IsAPIServer(sender user.Info) bool {
	return sender != nil && sender.GetName() == user.APIServerUser && slices.Contains(sender.GetGroups(), user.SystemPrivilegedGroup)
}
