// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
)

var resourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// quotaCheck compares the sum of all steps with the quotas of the namespace.
type quotaCheck struct {
	// client is that of the ResourceQuotas in the namespace.
	client    dynamic.ResourceInterface
	limiter   flowcontrol.RateLimiter
	namespace string
}

// refusals returns refusals of the tasks that exceed a quota once the tasks before them have been executed. The dry run has
// checked each object alone. Without the permission to list quotas, only that check is made.
func (c *quotaCheck) refusals(ctx context.Context, tasks []*task) ([]Refusal, error) {
	if !slices.ContainsFunc(tasks, func(t *task) bool { return t.Verb == Create }) {
		return nil, nil
	}
	quotas, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	var refusals []Refusal
	for _, quota := range quotas {
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			refusals = append(refusals, refusalsByQuota(&quota, name, tasks)...)
		}
	}
	return refusals, nil
}

// list returns the ResourceQuotas without scopes. Scoped ones concern Pods only.
func (c *quotaCheck) list(ctx context.Context) ([]corev1.ResourceQuota, error) {
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	found, err := c.client.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the quotas of namespace %s: %w", c.namespace, err)
	}
	var list corev1.ResourceQuotaList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.UnstructuredContent(), &list); err != nil {
		return nil, fmt.Errorf("read the quotas of namespace %s: %w", c.namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(quota corev1.ResourceQuota) bool {
		return len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil
	}), nil
}

// refusalsByQuota returns refusals of the tasks that exceed a quota for one resource.
func refusalsByQuota(quota *corev1.ResourceQuota, name corev1.ResourceName, tasks []*task) (refusals []Refusal) {
	limit, used := quota.Status.Hard[name], quota.Status.Used[name]
	for _, t := range tasks {
		needed := t.quotaUsage()[name]
		if t.Verb != Create || needed == 0 {
			continue
		}
		sum := used.DeepCopy()
		sum.Add(*resource.NewQuantity(needed, resource.DecimalSI))
		if sum.Cmp(limit) <= 0 {
			used = sum
			continue
		}
		refusals = append(refusals, Refusal{Object: t.object, step: t.index, Message: fmt.Sprintf(
			"exceeded quota: %s, requested: %s=%d, used: %s=%s with what is created before it, limited: %s=%s",
			quota.Name, name, needed, name, used.String(), name, limit.String())})
	}
	return refusals
}

// quotaUsage returns what the object of a task counts as in quotas.
func (t *task) quotaUsage() map[corev1.ResourceName]int64 {
	counted := map[corev1.ResourceName]int64{corev1.ResourceName("count/" + t.resource.GroupResource().String()): 1}
	if t.resource.Group == "" {
		counted[corev1.ResourceName(t.resource.Resource)] = 1
	}
	if t.object.Kind != "Service" || t.object.Group != "" {
		return counted
	}
	var service corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.Apply.Object, &service); err != nil {
		return counted // The API server accepted it in the dry run, so its version of the type is newer.
	}
	balanced := service.Spec.Type == corev1.ServiceTypeLoadBalancer
	if balanced {
		counted[corev1.ResourceServicesLoadBalancers] = 1
	}
	allocates := service.Spec.AllocateLoadBalancerNodePorts
	if service.Spec.Type == corev1.ServiceTypeNodePort || balanced && (allocates == nil || *allocates) {
		counted[corev1.ResourceServicesNodePorts] = int64(len(service.Spec.Ports))
	}
	return counted
}
