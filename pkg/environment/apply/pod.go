// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// podTemplatePaths are the paths of Pod templates in workloads.
var podTemplatePaths = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
}

func (t *task) hasPodTemplate() bool { return podTemplatePaths[t.object.GroupKind] != nil }

// podCheck dry-runs the Pods of workloads.
type podCheck struct {
	// client is that of the Pods in the namespace.
	client  dynamic.ResourceInterface
	manager string
	limiter flowcontrol.RateLimiter
}

// dryRun dry-runs the creation of a Pod from the dry-run result of a workload, unless the template is unchanged. A refusal of
// the Pod is returned as one of its workload.
func (c *podCheck) dryRun(ctx context.Context, t *task, tried *unstructured.Unstructured) ([]Refusal, error) {
	path, starts := podTemplatePaths[t.object.GroupKind]
	if !starts {
		return nil, nil
	}
	template, _, _ := unstructured.NestedMap(tried.Object, path...)
	if t.live != nil {
		before, _, _ := unstructured.NestedMap(t.live.Object, path...)
		if equality.Semantic.DeepEqual(before, template) {
			return nil, nil
		}
	}
	err := c.create(ctx, podOf(tried, template))
	if err == nil || isNotTestable(err) || exceedsQuota(err) && !t.startsPods(tried) {
		return nil, nil
	}
	if refusals := podRefusals(t, strings.Join(path, "."), err); len(refusals) > 0 {
		return refusals, nil
	}
	return nil, err
}

// podRefusals returns why the API server refuses a Pod, as refusals of its workload. It returns none if the error is not a
// refusal.
func podRefusals(t *task, path string, err error) []Refusal {
	refusals := t.refusals(err)
	for i := range refusals {
		refusals[i].Field = strings.TrimSuffix(path+"."+refusals[i].Field, ".")
	}
	return refusals
}

// isNotTestable reports whether the dry run of a Pod failed because this process lacks the permission to create Pods, or
// because the Pod's ServiceAccount does not exist yet.
func isNotTestable(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), `cannot create resource "pods"`) || lacksAccount(err))
}

func lacksAccount(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// startsPods reports whether the workload creates Pods immediately, in addition to those that exist.
func (t *task) startsPods(tried *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(tried.Object, "spec", "replicas")
	suspended, _, _ := unstructured.NestedBool(tried.Object, "spec", "suspend")
	return t.live == nil && t.object.Kind != "CronJob" && !suspended && (!found || replicas > 0)
}

// create dry-runs a Pod. If its ServiceAccount does not exist yet, it uses the default one.
func (c *podCheck) create(ctx context.Context, pod *unstructured.Unstructured) error {
	for {
		if err := c.limiter.Wait(ctx); err != nil {
			return err
		}
		_, err := c.client.Create(ctx, pod, metav1.CreateOptions{
			FieldManager: c.manager, DryRun: dryRunOption(true),
		})
		if account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName"); account == "" || !lacksAccount(err) {
			return err
		}
		unstructured.RemoveNestedField(pod.Object, "spec", "serviceAccountName")
		unstructured.RemoveNestedField(pod.Object, "spec", "serviceAccount")
	}
}

// podOf returns a Pod of a template, with the volumes of a StatefulSet's claims.
func podOf(owner *unstructured.Unstructured, template map[string]any) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}}
	if metadata, ok := template["metadata"].(map[string]any); ok {
		pod.Object["metadata"] = metadata
	}
	pod.SetCreationTimestamp(metav1.Time{})
	pod.SetGenerateName(owner.GetName() + "-")
	pod.SetNamespace(owner.GetNamespace())
	claims, _, _ := unstructured.NestedSlice(owner.Object, "spec", "volumeClaimTemplates")
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, claim := range claims {
		object, _ := claim.(map[string]any)
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		volumes = slices.DeleteFunc(volumes, func(volume any) bool {
			fields, _ := volume.(map[string]any)
			return fields["name"] == name
		})
		volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
	}
	if spec, ok := pod.Object["spec"].(map[string]any); ok && len(volumes) > 0 {
		spec["volumes"] = volumes
	}
	return pod
}
