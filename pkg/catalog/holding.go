// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// newRecord is a CatalogWorkload that holds nothing yet. It takes the place of the one that has been read, if there is one, and
// of none that somebody has written since.
func (s *situation) newRecord(workload reference) *v1alpha1.CatalogWorkload {
	owner := metav1.NewControllerRef(s.catalog, v1alpha1.SchemeGroupVersion.WithKind(string(v1alpha1.SubjectAppCatalog)))
	out := &v1alpha1.CatalogWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.catalog.Namespace,
			Name:            v1alpha1.CatalogWorkloadName(s.catalog.Name, workload.Kind, workload.Name),
			Labels:          map[string]string{v1alpha1.LabelCatalog: s.catalog.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Status: v1alpha1.CatalogWorkloadRecord{Kind: workload.Kind, Name: workload.Name},
	}
	if held := s.held[workload]; held != nil {
		out.UID, out.ResourceVersion = held.UID, held.ResourceVersion
	}
	return out
}

// record is the CatalogWorkload of an entry.
func (s *situation) record(
	workload reference, entry v1alpha1.CatalogEntry, content, rendered capture.Manifest,
) *v1alpha1.CatalogWorkload {
	out := s.newRecord(workload)
	status := &out.Status
	status.Revision, status.Hash, status.CapturedAt = entry.Revision, entry.Hash, seconds(s.now)
	if rendered.Raw != nil {
		status.Manifest = content.Raw
	}
	if status.Manifest != nil && rendered.Hash != content.Hash {
		status.Rendered = rendered.Raw
	}
	if held := s.held[workload]; held != nil && held.Status.CapturedAt != nil && contentOf(held).Hash == content.Hash {
		status.CapturedAt = held.Status.CapturedAt
	}
	return out
}

// missing is the CatalogWorkload of a workload that the source does not have; nil when there was none.
func (s *situation) missing(held *v1alpha1.CatalogWorkload, entry v1alpha1.CatalogEntry) *v1alpha1.CatalogWorkload {
	if held == nil {
		return nil
	}
	out := held.DeepCopy()
	out.Status.Missing, out.Status.Revision = true, entry.Revision
	out.Status.Source = v1alpha1.SourceObservation{Namespace: s.catalog.Spec.SourceNamespace}
	if out.Status.MissingSince == nil {
		out.Status.MissingSince = seconds(s.now)
	}
	return out
}

// contentOf is the manifest that a CatalogWorkload holds, the zero value when it holds none.
func contentOf(held *v1alpha1.CatalogWorkload) capture.Manifest {
	if held == nil || held.Status.Manifest == nil {
		return capture.Manifest{}
	}
	content, err := capture.Read(held.Status.Manifest)
	if err != nil {
		return capture.Manifest{} // As if it had been too large: it is captured again.
	}
	return content
}

// differs says whether a CatalogWorkload is to be written. That the source has another resourceVersion is no reason: each
// write of a status would be one.
func differs(held, next *v1alpha1.CatalogWorkload) bool {
	if held == nil {
		return true
	}
	return summaryOf(held) != summaryOf(next) || contentOf(held).Hash != contentOf(next).Hash
}

// summary is what tells CatalogWorkloads apart but for their manifests.
type summary struct {
	revision          int64
	hash              string
	missing, rendered bool
	source            v1alpha1.SourceObservation
}

func summaryOf(record *v1alpha1.CatalogWorkload) summary {
	status := &record.Status
	out := summary{status.Revision, status.Hash, status.Missing, status.Rendered != nil, status.Source}
	out.source.ResourceVersion = ""
	return out
}
