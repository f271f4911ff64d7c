// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// trim removes from a SyncStatus what the caches do not need: there are many, they are kept for months, and controllers read the one
// that they work on from the API. Of a record of an environment only the identity, the spec, the state and
// its end stay; of a record of a
// catalog everything but its lists.
func trim(object any) (any, error) {
	record, ok := object.(*v1alpha1.SyncStatus)
	if !ok {
		return object, nil
	}
	if record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
		return &v1alpha1.SyncStatus{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: record.Namespace, Name: record.Name, UID: record.UID, ResourceVersion: record.ResourceVersion,
			},
			Spec:   record.Spec,
			Status: v1alpha1.SyncRecord{State: record.Status.State, ResolvedAt: record.Status.ResolvedAt},
		}, nil
	}
	trimmed := *record
	trimmed.ManagedFields = nil
	status := &trimmed.Status
	status.ResourceSummaries, status.WorkloadNames, status.ChangedBy, status.Commits = nil, nil, nil, nil
	return &trimmed, nil
}
