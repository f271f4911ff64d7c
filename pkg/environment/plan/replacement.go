// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

var (
	jobs = schema.GroupKind{Group: "batch", Kind: "Job"}

	// fixedInJobs are the fields of a Job's spec that API servers do not let anybody change.
	fixedInJobs = sets.New(
		"backoffLimitPerIndex", "completionMode", "completions", "managedBy", "podFailurePolicy", "selector", "successPolicy", "template",
	)
)

// isReplaced says whether changes are such that the object has to be deleted and created again: it has said that what it holds
// stays as it is, or is a Job, which is begun again.
func isReplaced(live *unstructured.Unstructured, changes []diff.Difference) bool {
	immutable, _, _ := unstructured.NestedBool(live.Object, "immutable")
	isJob := KeyOf(live).GroupKind == jobs
	return slices.ContainsFunc(changes, func(change diff.Difference) bool {
		return immutable && change.Path[0].Field != "metadata" ||
			isJob && change.Path[0].Field == "spec" && len(change.Path) > 1 && fixedInJobs.Has(change.Path[1].Field)
	})
}

// replaced is the outcome when the object is deleted and created again. What others have put into it goes. A Job's other changes
// are not told: they are what its controller has added, and adds again.
func (d *draft) replaced(ctx context.Context, v merge.Versions, out outcome) (outcome, error) {
	out.removal, out.apply, out.after = nil, v.Desired, v.Desired
	if KeyOf(v.Live).GroupKind == jobs {
		return out, nil
	}
	var err error
	out.changes, err = d.merger.Schemas.Compare(ctx, v.Live, out.after)
	return out, err
}
