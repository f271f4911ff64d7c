// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// newWorkload returns a CatalogWorkload without content. It has the UID and resourceVersion of the one that was read, so that writing it
// fails if another client has written it since.
func (in *planInput) newWorkload(workload reference) *v1alpha1.CatalogWorkload {
	owner := metav1.NewControllerRef(in.catalog, v1alpha1.SchemeGroupVersion.WithKind(string(v1alpha1.SubjectAppCatalog)))
	out := &v1alpha1.CatalogWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       in.catalog.Namespace,
			Name:            v1alpha1.CatalogWorkloadName(in.catalog.Name, workload.Kind, workload.Name),
			Labels:          map[string]string{v1alpha1.LabelCatalog: in.catalog.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Status: v1alpha1.CatalogWorkloadRecord{Kind: workload.Kind, Name: workload.Name},
	}
	if held := in.held[workload]; held != nil {
		out.UID, out.ResourceVersion = held.UID, held.ResourceVersion
	}
	return out
}

// captured returns the CatalogWorkload of an entry with the captured content and its rendered form.
func (in *planInput) captured(
	workload reference, entry v1alpha1.CatalogEntry, content, rendered capture.Manifest,
) *v1alpha1.CatalogWorkload {
	out := in.newWorkload(workload)
	status := &out.Status
	status.Revision, status.Hash, status.CapturedAt = entry.Revision, entry.Hash, seconds(in.now)
	if rendered.Raw != nil {
		status.Manifest = content.Raw
	}
	if status.Manifest != nil && rendered.Hash != content.Hash {
		status.Rendered = rendered.Raw
	}
	if held := in.held[workload]; held != nil && held.Status.CapturedAt != nil && contentOf(held).Hash == content.Hash {
		status.CapturedAt = held.Status.CapturedAt
	}
	return out
}

// missing returns the CatalogWorkload of a workload that is not in the source, nil if there was none.
func (in *planInput) missing(held *v1alpha1.CatalogWorkload, entry v1alpha1.CatalogEntry) *v1alpha1.CatalogWorkload {
	if held == nil {
		return nil
	}
	out := held.DeepCopy()
	out.Status.Missing, out.Status.Revision = true, entry.Revision
	out.Status.Source = v1alpha1.SourceObservation{Namespace: in.catalog.Spec.SourceNamespace}
	if out.Status.MissingSince == nil {
		out.Status.MissingSince = seconds(in.now)
	}
	return out
}

// contentOf returns the manifest of a CatalogWorkload, the zero value if it has none.
func contentOf(held *v1alpha1.CatalogWorkload) capture.Manifest {
	if held == nil || held.Status.Manifest == nil {
		return capture.Manifest{}
	}
	content, err := capture.Read(held.Status.Manifest)
	if err != nil {
		return capture.Manifest{} // Like a manifest that is too large, it is captured again.
	}
	return content
}

// differs reports whether a CatalogWorkload has to be written. The resourceVersion of the source is not compared, because every update of
// a status changes it.
func differs(held, next *v1alpha1.CatalogWorkload) bool {
	if held == nil {
		return true
	}
	return summaryOf(held) != summaryOf(next) || contentOf(held).Hash != contentOf(next).Hash
}

// summary is the part of a CatalogWorkload, without its manifests, that differs compares.
type summary struct {
	revision          int64
	hash              string
	missing, rendered bool
	source            v1alpha1.SourceObservation
}

func summaryOf(workload *v1alpha1.CatalogWorkload) summary {
	status := &workload.Status
	out := summary{status.Revision, status.Hash, status.Missing, status.Rendered != nil, status.Source}
	out.source.ResourceVersion = ""
	return out
}
