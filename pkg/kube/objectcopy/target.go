// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// Target is where copies go, and how they differ from their sources there. Without more than a namespace they are as their
// sources.
type Target struct {
	Namespace string
	// Labels are set on every copy.
	Labels map[string]string
	// Marks are left out, except labels that Selected has or that a selector of the object itself uses.
	Marks    Marks
	Selected sets.Set[string]
	// LeftBehind are names of Secrets that are not copied; ServiceAccounts do not refer to them.
	LeftBehind sets.Set[string]

	// Custom says of kinds that are not built into Kubernetes which are copied, as they are but for their metadata; nil: none.
	Custom func(kind schema.GroupKind) bool

	// OneReplica lets at most one pod of a workload run, whatever an autoscaler would like, and lets it be evicted: a
	// PodDisruptionBudget that wants more would keep nodes from being drained.
	OneReplica bool
	// SuspendCronJobs keeps CronJobs from starting Jobs.
	SuspendCronJobs bool
	// NoLoadBalancers makes Services of type LoadBalancer such of type ClusterIP, and gives no Service a name in a DNS
	// outside the cluster.
	NoLoadBalancers bool
	// Host returns the host that an Ingress, a Gateway or a route has in the place of one; an empty host is one that stands for all.
	// Rules, certificates and listeners for which it returns an empty one are left out, and so is the backend of last resort of an
	// Ingress, which answers for all hosts. It is nil if hosts stay as they are.
	Host func(of *unstructured.Unstructured, host string) string
}

// Copy returns the copy of an object, which is left as it is, or why there is none: then the copy is nil. It fails on
// an object without apiVersion or kind.
func (t Target) Copy(object *unstructured.Unstructured) (copied *unstructured.Unstructured, omitted string, err error) {
	content, err := manifest.Canonical(object)
	if err != nil {
		return nil, "", fmt.Errorf("copying %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	if reason := staysBehind(content); reason != "" {
		return nil, reason, nil
	}
	copied = content.DeepCopy()
	delete(copied.Object, "status")
	copied.Object["metadata"] = t.metadata(object, content)
	if reason := t.adapt(copied, object.GetNamespace()); reason != "" {
		return nil, reason, nil
	}
	return copied, "", nil
}

// metadata is what copies have of the metadata of their sources.
func (t Target) metadata(object, content *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": object.GetName(), "namespace": t.Namespace}
	annotations := content.GetAnnotations()
	maps.DeleteFunc(annotations, t.Marks.has)
	labels := t.labels(object, content)
	for field, texts := range map[string]map[string]string{"annotations": annotations, "labels": labels} {
		if len(texts) > 0 {
			metadata[field] = untyped(texts)
		}
	}
	return metadata
}

// labels are those that are content or that a selector uses, without marks that none uses, and with those of the target.
func (t Target) labels(object, content *unstructured.Unstructured) map[string]string {
	used := SelectorKeys(content).Union(t.Selected)
	kept := content.GetLabels()
	maps.DeleteFunc(kept, t.Marks.has)
	labels := map[string]string{}
	maps.Copy(labels, kept)
	for key, value := range object.GetLabels() {
		if used.Has(key) {
			labels[key] = value
		}
	}
	maps.Copy(labels, t.Labels)
	return labels
}

func untyped(texts map[string]string) map[string]any {
	out := make(map[string]any, len(texts))
	for key, text := range texts {
		out[key] = text
	}
	return out
}
