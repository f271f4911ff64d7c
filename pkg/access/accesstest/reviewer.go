// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accesstest provides reviews of permissions to tests, without a cluster.
package accesstest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/configbutler/slipstream/pkg/access"
)

var errNothingToReview = errors.New("a review of no permissions")

// Reviewer is an access.Reviewer whose results the test sets. At first all holders have all permissions. Methods can be called
// concurrently.
type Reviewer struct {
	// RejectEmpty has reviews of no permissions fail.
	RejectEmpty bool

	mu sync.Mutex
	// missing and errs are the results by the text of the holder, "" for all holders.
	missing  map[string]string
	errs     map[string]error
	reviewed []string
}

var _ access.Reviewer = &Reviewer{}

// Deny has reviews of a holder, such as `user "eve"`, find a missing permission, and those of others none. "" stands for all holders.
func (r *Reviewer) Deny(holder, missing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = map[string]string{holder: missing}
}

// Fail has reviews of a holder return an error, and those of others none. "" stands for all holders.
func (r *Reviewer) Fail(holder string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = map[string]error{holder: err}
}

// Allow takes back Deny and Fail.
func (r *Reviewer) Allow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing, r.errs = nil, nil
}

// Reviewed returns the reviewed permissions, such as `user "eve" list configmaps in the namespace shop`, the first one first.
func (r *Reviewer) Reviewed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reviewed)
}

// CheckNow is Check.
func (r *Reviewer) CheckNow(ctx context.Context, who access.Holder, permissions []access.Permission) (string, error) {
	return r.Check(ctx, who, permissions)
}

// Check returns the result that the test has set.
func (r *Reviewer) Check(_ context.Context, who access.Holder, permissions []access.Permission) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, permission := range permissions {
		r.reviewed = append(r.reviewed, who.String()+" "+permission.String())
	}
	if r.RejectEmpty && len(permissions) == 0 {
		return "", errNothingToReview
	}
	return r.missing[who.String()] + r.missing[""], errors.Join(r.errs[who.String()], r.errs[""])
}
