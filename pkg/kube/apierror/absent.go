// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apierror classifies errors of the API server, and removes from them what may quote a Secret.
package apierror

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsAbsent reports whether the API server has responded that an object or type does not exist. A 404 of a proxy, or of an API server that
// does not serve the type at the moment, does not count: what exists would be treated as deleted.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
