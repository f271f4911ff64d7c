// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// teams posts to a workflow of Microsoft Teams. Workflows respond with 202 before they post, and have no threads.
type teams struct {
	poster
	spec *v1alpha1.TeamsSink
}

var _ Receiver = &teams{}

func newTeams(config Config, secrets secretReader, spec *v1alpha1.TeamsSink) (*teams, error) {
	poster, err := newPoster(config, secrets, spec.CABundle, spec.ProxySecretRef)
	if err != nil {
		return nil, err
	}
	return &teams{poster, spec}, nil
}

// Deliver sends a message as an Adaptive Card.
func (t *teams) Deliver(ctx context.Context, m *message.Message, _ string) Result {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	body, err := format.Teams(m)
	if err != nil {
		return unencodable(err)
	}
	secret, err := t.secrets.read(ctx, t.spec.SecretRef.Name)
	if err != nil {
		return failed(err)
	}
	request, err := webhookPost(secret, body)
	if err != nil {
		return failed(err)
	}
	response, result := t.send(ctx, request)
	if result.Outcome == Rejected && hasText(response, "WorkflowTriggerIsNotEnabled") {
		result.Outcome = Retry // The workflow is turned off.
	}
	return result
}
