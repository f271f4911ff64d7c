// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
)

// forbidden is the cause of an error if the server accepts the identity of the credentials and does not permit the request.
type forbidden struct {
	// status is the status of the response, with the server's message.
	status string
}

func (f *forbidden) Error() string { return f.status }

// explainForbidden returns the error of a request, and says what the credentials lack if it is forbidden. Many servers say only that it is:
// for a token that may read and not write, for one without any permission, and, if clients may create repositories by pushing to them, for a
// repository that does not exist. So explainForbidden requests to read the repository.
func (r *Remote) explainForbidden(ctx context.Context, budget *budget, err error) error {
	var refused *forbidden
	if !errors.As(err, &refused) {
		return err
	}
	session, opening := r.open(ctx, uploadPack, budget)
	if opening != nil {
		return err
	}
	defer session.close()
	_, reading := session.advertisement(ctx, "")
	var unreadable *forbidden
	switch {
	case reading == nil:
		return refuse(Unauthorized, "the credentials may read the repository, but not write to it: %s", refused.status)
	case errors.As(reading, &unreadable):
		return refuse(Unauthorized, "the credentials may neither read the repository nor write to it: %s", refused.status)
	case kindOf(reading) == NotFound:
		return reading
	default:
		return err
	}
}
