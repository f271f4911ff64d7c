// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// IsAPIServer reports whether a user is an API server that sends a request to itself: kube-apiserver, if the request
// comes through the aggregator, or this server through its loopback client. The request must have both that user and that
// group. A client that may impersonate both already has full access, and needs no forged request.
func IsAPIServer(sender user.Info) bool {
	return sender != nil && sender.GetName() == user.APIServerUser && slices.Contains(sender.GetGroups(), user.SystemPrivilegedGroup)
}
