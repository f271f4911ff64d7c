// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// reasonOf returns the condition reason for an error of a run.
func reasonOf(failed error) string {
	switch {
	case errors.Is(failed, ErrContended):
		return v1alpha1.ReasonContended
	case errors.Is(failed, ErrRevisionNotKept):
		return v1alpha1.ReasonRevisionNotKept
	case errors.Is(failed, ErrCatalogReplaced):
		return v1alpha1.ReasonCatalogReplaced
	case isMissingCatalog(failed):
		return v1alpha1.ReasonCatalogNotFound
	case apierrors.IsForbidden(failed), apierrors.IsUnauthorized(failed):
		return v1alpha1.ReasonForbidden
	case isUnreachable(failed):
		return v1alpha1.ReasonUnreachable
	}
	return v1alpha1.ReasonSyncFailed
}

func isMissingCatalog(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Group == v1alpha1.GroupName && status.Status().Details.Kind == "appcatalogs"
}

// isUnreachable reports whether the API server did not respond, or could not serve the request.
func isUnreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}
