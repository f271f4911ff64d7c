// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// health is whether a branch can be served, for the condition of its repository. A change of it requests a check of the repository, because
// the next scheduled check may be minutes away.
type health struct {
	branch  string
	recheck func()
	// rejection is the reason why the remote rejected the last push; nil if it was accepted.
	rejection atomic.Pointer[string]
	// failing is set while the branch waits for a retry.
	failing atomic.Bool
}

// setPushed records whether the remote accepts pushes, from the result of serving the branch. A rejection by a hook or by
// branch protection is part of the condition of the repository: a check does not detect it.
func (h *health) setPushed(err error) {
	var rejection *string
	var git *gitrepo.Error
	if errors.As(err, &git) && git.Kind == gitrepo.Rejected {
		text := fmt.Sprintf("branch %s: %s", h.branch, git)
		rejection = &text
	}
	before := h.rejection.Swap(rejection)
	if (before == nil) != (rejection == nil) || before != nil && *before != *rejection {
		h.recheck()
	}
}

// setFailing records whether the branch waits for a retry.
func (h *health) setFailing(failing bool) {
	if h.failing.Swap(failing) != failing {
		h.recheck()
	}
}
