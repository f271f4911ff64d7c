// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// MergeAll returns a Planner that merges settled objects, too.
func (p Planner) MergeAll() Planner {
	p.mergeAll = true
	return p
}
