// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// timeLimit bounds one delivery, with all its requests. Slack and Teams respond within seconds; mail servers that check a message before
// they accept it may take longer.
const timeLimit = 30 * time.Second

// Config is what all receivers share.
type Config struct {
	// Secrets reads the credentials for each delivery.
	Secrets corev1client.SecretsGetter
	// Events records Events.
	Events events.Recorder
	// Network connects to receivers. Mail servers are connected to directly: a proxy for HTTP rarely forwards their ports.
	Network *proxy.Network
	Clock   clock.PassiveClock
	// Source is the source of CloudEvents.
	Source string
}

// Outcome is what happens next to a message.
type Outcome string

// Outcomes.
const (
	// Delivered: the receiver has accepted it.
	Delivered Outcome = "Delivered"
	// Retry: it is sent again later.
	Retry Outcome = "Retry"
	// Rejected: it is not sent again, because the receiver would reject it again.
	Rejected Outcome = "Rejected"
)

// Result is the outcome of a delivery.
type Result struct {
	Outcome Outcome
	// Message describes it for users: one printable line without credentials.
	Message string
	// RetryAfter is the delay that the receiver requested, if any.
	RetryAfter time.Duration
	// Thread is the reference that later messages of the thread are delivered with. It is empty if the receiver has no threads, or the
	// message none.
	Thread string
	// Reason is v1alpha1.ReasonSecretNotFound or v1alpha1.ReasonSecretInvalid, or empty if no Secret is the cause.
	Reason string
}

// Receiver delivers messages to one receiver, one at a time.
type Receiver interface {
	// Deliver sends a message. thread is the reference from the first delivery of its thread, if there was one. A message that is sent
	// again has the same ID.
	Deliver(ctx context.Context, m *message.Message, thread string) Result
	// Close releases what the receiver holds open. It is not called during Deliver.
	Close()
}

// New returns the receiver of a sink, whose spec must have its defaults. A changed spec needs a new receiver.
func New(config Config, sink *v1alpha1.NotificationSink) (Receiver, error) {
	spec := sink.Spec.DeepCopy()
	secrets := secretReader{config.Secrets, sink.Namespace}
	switch {
	case spec.Slack != nil:
		return newSlack(config, secrets, spec.Slack)
	case spec.Teams != nil:
		return newTeams(config, secrets, spec.Teams)
	case spec.Email != nil:
		return newMail(config, secrets, sink.Name, spec.Email)
	case spec.Webhook != nil:
		return newWebhook(config, secrets, spec.Webhook)
	case spec.Event != nil:
		return &event{config.Events}, nil
	}
	return nil, errors.New("none of slack, teams, email, webhook and event is set")
}
