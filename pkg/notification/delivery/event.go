// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// event records Events of the subjects. The recorder writes them later, and drops those that it cannot write.
type event struct {
	recorder events.Recorder
}

var _ Receiver = &event{}

// Close does nothing.
func (*event) Close() {}

// Deliver records an Event for each notification.
func (e *event) Deliver(_ context.Context, m *message.Message, _ string) Result {
	made := format.Events(m)
	for _, one := range made {
		e.recorder.Event(&corev1.ObjectReference{
			APIVersion: one.Subject.APIVersion, Kind: one.Subject.Kind,
			Namespace: one.Subject.Namespace, Name: one.Subject.Name, UID: types.UID(one.Subject.UID),
		}, one.Type, one.Reason, one.Message)
	}
	return Result{Outcome: Delivered, Message: "recorded " + summary.Count(len(made), "Event")}
}
