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

// Target is the namespace of copies and how they differ from their sources. With only a namespace, copies are like
// their sources.
type Target struct {
	Namespace string
	// Labels are set on every copy.
	Labels map[string]string
	// Marks are removed, except for labels in Selected and labels that a selector of the object itself uses.
	Marks    Marks
	Selected sets.Set[string]
	// OmittedSecrets are the names of Secrets that are not copied. References of ServiceAccounts to them are removed.
	OmittedSecrets sets.Set[string]

	// Custom reports whether a kind that is not built into Kubernetes is copied. Only the metadata of such objects is
	// adapted. If it is nil, none is copied.
	Custom func(kind schema.GroupKind) bool

	// OneReplica limits workloads and autoscalers to one replica. It lets a PodDisruptionBudget evict that replica,
	// since it would otherwise block node drains.
	OneReplica bool
	// SuspendCronJobs suspends CronJobs.
	SuspendCronJobs bool
	// NoLoadBalancers turns Services of type LoadBalancer into type ClusterIP, and gives no Service a public DNS name.
	NoLoadBalancers bool
	// Host returns the replacement for a host of an Ingress, a Gateway or a route. The given host is empty where an
	// object has no host and serves all. Rules, certificates and listeners for which Host returns an empty host are
	// removed, and so is the default backend of an Ingress, which serves all hosts. If Host is nil, hosts are
	// unchanged.
	Host func(of *unstructured.Unstructured, host string) string
}

// Copy returns the copy of an object, or a nil copy and the reason why the object is omitted. The object is unchanged.
// Copy fails on an object without apiVersion or kind.
func (t Target) Copy(object *unstructured.Unstructured) (copied *unstructured.Unstructured, omitted string, err error) {
	content, err := manifest.Canonical(object)
	if err != nil {
		return nil, "", fmt.Errorf("copying %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	if reason := omitReason(content); reason != "" {
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

// metadata returns the metadata of a copy.
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

// labels returns the labels that are content or that a selector uses, without marks that no selector uses, and with the
// target's labels.
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
