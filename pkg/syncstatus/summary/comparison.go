// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Comparison returns what a request to compare a GitDestination has found so far.
func Comparison(found *v1alpha1.SyncProgress) string {
	text := fmt.Sprintf("Compared %d of %d types: %d files written, %d removed", found.Compared, found.Types, found.FilesWritten,
		found.FilesRemoved)
	if found.OrphansHeld > 0 {
		text += fmt.Sprintf(", %d that no object maps to kept", found.OrphansHeld)
	}
	if len(found.Failures) > 0 {
		text += "; " + strings.Join(found.Failures, "; ")
	}
	return text
}
