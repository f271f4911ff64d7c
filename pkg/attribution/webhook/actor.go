// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// actorOf is who a user is. behind is who impersonates them, if anybody does.
func actorOf(user authenticationv1.UserInfo, behind string) attribution.Actor {
	actor := attribution.NewActor(user.Username, user.Groups, user.Extra)
	actor.ImpersonatedBy = behind
	return actor
}
