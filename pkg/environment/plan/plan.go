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

// Plan is what a sync does.
type Plan struct {
	// Steps are in the order in which they are done, those that leave objects alone among them. Each object has one.
	Steps []Step
	// News is a hash of what else than workloads the action Catalog changes because it is wanted otherwise than it was last, and not because
	// somebody has changed it in the target. It is empty if there is nothing such.
	News string
	// Missing are what workloads need and the source does not have.
	Missing []v1alpha1.ObjectFailure
	// NotOurs are objects that are left alone because the environment has not written them.
	NotOurs []v1alpha1.ObjectFailure
	// Leaving are objects that cannot be written before they are gone.
	Leaving []v1alpha1.ObjectFailure
	// Conflicts are the workloads of a Branch for which nothing is done because somebody has to decide.
	Conflicts []v1alpha1.WorkloadConflict
	// Reported are sentences about what is not done, such as to copy the data of a PersistentVolumeClaim.
	Reported []string
	// NotCopied are the objects of the source that workloads use, that are not copied, and that the target lacks, by kind and name.
	NotCopied []v1alpha1.NotCopiedObject
	// Index is what the environment's EnvironmentDependencies record when the plan has been carried out.
	Index []v1alpha1.EnvironmentDependencyRecord
}

// Verb is what is done to an object.
type Verb string

// What is done to objects.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
	Leave  Verb = "leave"
)

// Step is what is done to one object.
type Step struct {
	Key
	Namespace string
	// Action is the one that does it: Catalog or Cluster.
	Action v1alpha1.SyncAction
	Verb   Verb
	// Reason is why, in a few words.
	Reason string
	// Unchanged says that the object is what it should be.
	Unchanged bool
	// Hidden says that its values are not shown to whoever asks for the plan: nobody has been asked whether they may be read.
	Hidden bool
	// Changes are the fields that an update changes, and by Before who owns them in the target.
	Changes []diff.Difference

	// Live is the object before, nil if it is created. Whoever deletes it does so on condition that it is still this one.
	Live *unstructured.Unstructured `json:"-"`
	// Removal is a JSON patch, nil if there is none, that is sent before Apply: it takes out what others own and what is not
	// to stay.
	Removal []byte `json:"-"`
	// Apply is what is sent to create or update the object, by server-side apply with force. It has the environment's fields
	// and no others.
	Apply *unstructured.Unstructured `json:"-"`
	// After is what becomes of the object, without managedFields. It is nil if it is left alone or deleted.
	After *unstructured.Unstructured `json:"-"`
	// Desired is the Base of the next plan, once this step has been done. It is nil if there is nothing that was agreed upon.
	Desired *unstructured.Unstructured `json:"-"`
}

// String says what is done to what, and nothing of the content.
func (s Step) String() string {
	fields := make([]string, len(s.Changes))
	for i, change := range s.Changes {
		fields[i] = change.Path.String()
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s %s", s.Verb, s.Key, s.Reason, strings.Join(fields, " ")))
}

// GoString is String, so that no way of printing shows content.
func (s Step) GoString() string { return s.String() }

// isWorkload says whether a step is about what the catalog offers.
func (k Key) isWorkload() bool {
	resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(k.Kind)]
	return ok && resource.Group == k.Group
}

// workload is what the catalog calls the object.
func (k Key) workload() v1alpha1.WorkloadReference {
	return v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadKind(k.Kind), Name: k.Name}
}

// isDependency says whether the index names objects of this kind.
func (k Key) isDependency() bool {
	return k.Group == "" && v1alpha1.DependencyType(k.Kind).Valid()
}
