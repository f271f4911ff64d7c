// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// maxLength limits a reason, in bytes. Messages of workloads can be of any length.
const maxLength = 400

// notReadyReason returns why a workload is not ready, empty if it is.
func notReadyReason(of *unstructured.Unstructured) string {
	found, err := status.Compute(of)
	name := of.GetKind() + " " + of.GetName()
	switch {
	case err != nil:
		return name + " has a status that cannot be read"
	case found.Status == status.CurrentStatus:
		return ""
	case found.Status == status.TerminatingStatus:
		return name + " is being deleted"
	}
	return summary.Cut(summary.Line(name+" "+rolloutState(of)+conditionMessage(of)), maxLength)
}

// rolloutState describes the progress of a workload that is not ready.
func rolloutState(of *unstructured.Unstructured) string {
	if of.GetKind() == "Job" {
		if conditionIs(of, "Failed", corev1.ConditionTrue) != nil {
			return "has failed"
		}
		return "has not started"
	}
	wanted, ready := status.GetIntField(of.Object, ".spec.replicas", 1), status.GetIntField(of.Object, ".status.readyReplicas", 0)
	if of.GetKind() == "DaemonSet" {
		wanted = status.GetIntField(of.Object, ".status.desiredNumberScheduled", 0)
		ready = status.GetIntField(of.Object, ".status.numberReady", 0)
	}
	if ready < wanted {
		return fmt.Sprintf("has %d of %d ready", ready, wanted)
	}
	return "is being rolled out"
}

// conditionMessage returns the message of the condition that explains why a workload is not ready.
func conditionMessage(of *unstructured.Unstructured) string {
	for _, sign := range []struct {
		condition string
		bad       corev1.ConditionStatus
	}{{"ReplicaFailure", corev1.ConditionTrue}, {"Failed", corev1.ConditionTrue}, {"Progressing", corev1.ConditionFalse}} {
		if condition := conditionIs(of, sign.condition, sign.bad); condition != nil && condition.Message != "" {
			return ": " + condition.Message
		}
	}
	return ""
}

func conditionIs(of *unstructured.Unstructured, name string, is corev1.ConditionStatus) *status.BasicCondition {
	conditions, err := status.GetObjectWithConditions(of.Object)
	if err != nil {
		return nil
	}
	for _, condition := range conditions.Status.Conditions {
		if condition.Type == name && condition.Status == is {
			return &condition
		}
	}
	return nil
}
