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

	// immutableJobFields are the fields of a Job's spec that API servers do not allow to change.
	immutableJobFields = sets.New(
		"backoffLimitPerIndex", "completionMode", "completions", "managedBy", "podFailurePolicy", "selector", "successPolicy", "template",
	)
)

// needsReplacement reports whether changes require deleting and creating the object again: it is marked immutable, or is a
// Job whose immutable fields change.
func needsReplacement(live *unstructured.Unstructured, changes []diff.Difference) bool {
	immutable, _, _ := unstructured.NestedBool(live.Object, "immutable")
	isJob := KeyOf(live).GroupKind == jobs
	return slices.ContainsFunc(changes, func(change diff.Difference) bool {
		return immutable && change.Path[0].Field != "metadata" ||
			isJob && change.Path[0].Field == "spec" && len(change.Path) > 1 && immutableJobFields.Has(change.Path[1].Field)
	})
}

// replacement is the outcome of deleting and creating an object. Fields of other managers are lost. Only the original
// changes of a Job are listed: the others are fields that the Job controller adds again.
func replacement(ctx context.Context, schemas *diff.Schemas, v merge.Versions, out outcome) (outcome, error) {
	out.removal, out.apply, out.after = nil, v.Desired, v.Desired
	if KeyOf(v.Live).GroupKind == jobs {
		return out, nil
	}
	var err error
	out.changes, err = schemas.Compare(ctx, v.Live, out.after)
	return out, err
}
