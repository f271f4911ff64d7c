// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
)

// Plan is the result of planning a sync.
type Plan struct {
	// Steps are in the order of execution. Each object has one step, including the objects that are left alone.
	Steps []Step
	// OtherChangesHash identifies the changes of the action Catalog to objects other than workloads, as far as the desired
	// object differs from its base. Changes that only undo edits in the target do not count. It is empty if there are none.
	OtherChangesHash string
	// Missing lists the objects that workloads need and the source lacks or does not let the environment read.
	Missing []v1alpha1.ObjectFailure
	// NotOurs lists the objects that are left alone because the environment has not written them.
	NotOurs []v1alpha1.ObjectFailure
	// Terminating lists the objects that cannot be written until their deletion is finished.
	Terminating []v1alpha1.ObjectFailure
	// Conflicts lists the workloads of a Branch that are not written until a user resolves their conflicts.
	Conflicts []v1alpha1.WorkloadConflict
	// Warnings are sentences about what the sync does not do, for example copy the data of a PersistentVolumeClaim.
	Warnings []string
	// NotCopied lists, by kind and name, the objects of the source that workloads use, that are never copied, and that the
	// target lacks.
	NotCopied []v1alpha1.NotCopiedObject
	// Index is the environment's index after the plan has been applied.
	Index []v1alpha1.EnvironmentDependencyRecord
}

// Verb is the operation on an object.
type Verb string

// The operations of a plan.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	Leave  Verb = "leave"
)

// Step is the operation on one object.
type Step struct {
	Key
	Namespace string
	// Action is the sync action that executes the step: Catalog or Cluster.
	Action v1alpha1.SyncAction
	Verb   Verb
	// Reason is a short explanation of the step.
	Reason string
	// Unchanged is true if the live object matches the desired one.
	Unchanged bool
	// Hidden is true if the object's values must not be shown in a plan, because the requester's permission to read them
	// was not checked.
	Hidden bool
	// Changes are the fields that an update changes. Before holds their owners in the target.
	Changes []diff.Difference

	// Live is the object before the step, nil if it is created. A deletion must be conditional on this version.
	Live *unstructured.Unstructured `json:"-"`
	// Removal is a JSON patch, or nil. It is sent before Apply and removes fields that other managers own and that must not
	// stay.
	Removal []byte `json:"-"`
	// Apply is sent to create or update the object, by server-side apply with force. It contains the fields of the
	// environment and no others.
	Apply *unstructured.Unstructured `json:"-"`
	// After is the predicted object without managedFields. It is nil if the object is left alone or deleted.
	After *unstructured.Unstructured `json:"-"`
	// Offered is what the catalog offers for an object in conflict, nil for others.
	Offered *unstructured.Unstructured `json:"-"`
	// Desired becomes the object's base once the step has been executed. It is nil if a conflict is unresolved.
	Desired *unstructured.Unstructured `json:"-"`
}

// String describes the step without any content of the object.
func (s Step) String() string {
	fields := make([]string, len(s.Changes))
	for i, change := range s.Changes {
		fields[i] = change.Path.String()
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", s.Verb, s.Key, s.Reason, strings.Join(fields, " ")))
}

// GoString equals String, so that no format verb prints content.
func (s Step) GoString() string { return s.String() }
