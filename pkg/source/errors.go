// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Reason says in one word why the source cluster could not be read. The words go into conditions.
type Reason string

const (
	// Forbidden means that the account that reads the cluster lacks the permission.
	Forbidden Reason = "Forbidden"
	// Unauthorized means that the cluster does not accept the account's credentials.
	Unauthorized Reason = "Unauthorized"
	// Gone means that the cluster no longer serves the resource type, or does not yet.
	Gone Reason = "Gone"
	// Expired means that the resourceVersion asked for has been compacted.
	Expired Reason = "Expired"
	// Unreachable means no answer, or one from something in between that could not reach the type's server.
	Unreachable Reason = "Unreachable"
	// Overloaded means that the server asks to come back later.
	Overloaded Reason = "Overloaded"
	// Failed means anything else; the message tells.
	Failed Reason = "Failed"
)

// ReasonFor classifies an error of a request to the source cluster; the empty Reason stands for no error.
func ReasonFor(err error) Reason {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsUnauthorized(err):
		return Unauthorized
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return Gone
	case isExpired(err):
		return Expired
	case apierrors.IsTooManyRequests(err):
		return Overloaded
	case isUnreachable(err):
		return Unreachable
	default:
		return Failed
	}
}

// isExpired holds for both reasons that come with HTTP status 410.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

func isUnreachable(err error) bool {
	var network net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}
