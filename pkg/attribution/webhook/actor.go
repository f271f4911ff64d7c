// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// actorOf returns the actor for a user. impersonator is the user who impersonates it, or empty.
func actorOf(user authenticationv1.UserInfo, impersonator string) attribution.Actor {
	actor := attribution.NewActor(user.Username, user.Groups, user.Extra)
	actor.ImpersonatedBy = impersonator
	return actor
}
