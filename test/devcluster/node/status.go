// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// containerStatus is the state of the Pod's container. One of waiting, running and terminated is set.
type containerStatus struct {
	waiting    *corev1.ContainerStateWaiting
	running    *corev1.ContainerStateRunning
	terminated *corev1.ContainerStateTerminated
	ready      bool
	restarts   int32
}

// phase returns the phase of the Pod for the container's state.
func (s containerStatus) phase(policy corev1.RestartPolicy) corev1.PodPhase {
	switch {
	case s.waiting != nil:
		return corev1.PodPending
	case s.terminated != nil && s.terminated.ExitCode == 0 && policy != corev1.RestartPolicyAlways:
		return corev1.PodSucceeded
	case s.terminated != nil && policy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	}
	return corev1.PodRunning
}

// report writes the Pod's status.
func (p *pod) report(ctx context.Context, status containerStatus) {
	pods := p.node.client.CoreV1().Pods(p.object.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := pods.Get(ctx, p.object.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.describe(now, status)
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		p.logf("failed to update the Pod's status: %v", err)
	}
}

// describe sets the container's status in the Pod's.
func (p *pod) describe(object *corev1.Pod, status containerStatus) {
	wanted := object.Spec.Containers[0]
	object.Status.Phase = status.phase(object.Spec.RestartPolicy)
	object.Status.HostIP, object.Status.PodIP = loopback, p.address.String()
	object.Status.PodIPs = []corev1.PodIP{{IP: object.Status.PodIP}}
	if object.Status.StartTime == nil {
		now := metav1.Now()
		object.Status.StartTime = &now
	}
	object.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: wanted.Name, Image: wanted.Image, ImageID: wanted.Image,
		Ready: status.ready && status.running != nil, RestartCount: status.restarts,
		State: corev1.ContainerState{Waiting: status.waiting, Running: status.running, Terminated: status.terminated},
	}}
	ready := object.Status.ContainerStatuses[0].Ready
	setCondition(&object.Status, corev1.PodInitialized, true)
	setCondition(&object.Status, corev1.ContainersReady, ready)
	setCondition(&object.Status, corev1.PodReady, ready)
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool) {
	wanted := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if holds {
		wanted.Status = corev1.ConditionTrue
	}
	for index, condition := range status.Conditions {
		if condition.Type == kind {
			if condition.Status != wanted.Status {
				status.Conditions[index] = wanted
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, wanted)
}

// logf writes a line of the node into the Pod's log. Errors are ignored: a missing line is noticed by readers of the log.
func (p *pod) logf(format string, arguments ...any) {
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	line := fmt.Sprintf(format, arguments...)
	_, _ = fmt.Fprintf(file, "%s node: %s\n", time.Now().UTC().Format(time.RFC3339Nano), line)
	_ = file.Close()
}
