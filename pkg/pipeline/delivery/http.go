// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
)

// userAgent is who calls.
const userAgent = "slipstream"

// Config is what all HTTP sinks need.
type Config struct {
	// Secrets are read for each batch.
	Secrets corev1client.SecretsGetter
	Dial    Dial
	Clock   clock.PassiveClock
}

// HTTP sends batches to a server, over connections of its own.
type HTTP struct {
	config Config
	source pipelineformat.Source
	spec   v1alpha1.HTTPSink
	base   *url.URL
	format pipelineformat.Format
	client *http.Client
}

var _ Sink = &HTTP{}

// NewHTTP returns a sink as the spec, which has its defaults, says. One that is edited is closed, and made anew.
func NewHTTP(config Config, source pipelineformat.Source, spec v1alpha1.HTTPSink) (*HTTP, error) {
	base, err := url.Parse(spec.URL)
	if err != nil {
		return nil, fmt.Errorf("read url: %w", err)
	}
	format, err := pipelineformat.ByName(spec.Format)
	if err != nil {
		return nil, err
	}
	client, err := newClient(config.Dial, spec.CABundle)
	if err != nil {
		return nil, err
	}
	return &HTTP{config: config, source: source, spec: spec, base: base, format: format, client: client}, nil
}

// Close ends the connections. One on which an answer is just coming to its end goes when it has been idle for its time.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Deliver makes the calls of a batch.
func (h *HTTP) Deliver(ctx context.Context, batch pipelineformat.Batch, done Done) error {
	calls, err := h.format.Calls(batch, h.source)
	if err != nil {
		return err
	}
	shown, err := readCredentials(ctx, h.config.Secrets, h.spec.SecretRef)
	for _, call := range calls {
		verdict := pipelineformat.Verdict{Outcome: pipelineformat.Retry}
		if err == nil {
			verdict = h.tell(ctx, call, shown)
		} else {
			verdict.Text = shown.show(err.Error())
		}
		// An answer is noted even when ctx has ended since.
		if verdict.Outcome == pipelineformat.Retry && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := done(call.Keys, verdict); err != nil {
			return fmt.Errorf("note what became of batch %s: %w", batch.ID, err)
		}
		if verdict.Outcome == pipelineformat.Retry {
			return nil
		}
	}
	return nil
}

// tell makes a call and judges the answer.
func (h *HTTP) tell(ctx context.Context, call pipelineformat.Call, shown credentials) pipelineformat.Verdict {
	answer, err := h.post(ctx, call, shown)
	if err != nil {
		return pipelineformat.Verdict{Outcome: pipelineformat.Retry, Text: shown.show(explain(err, h.base.Host, h.spec.Timeout.Duration))}
	}
	verdict := h.format.Judge(call, answer.status, answer.header, answer.body)
	if verdict.Outcome == pipelineformat.Retry {
		verdict.After = max(min(verdict.After, maxRetryAfter), retryAfter(answer.header, h.config.Clock.Now()))
	}
	verdict.Text = shown.show(h.hint(answer.status) + verdict.Text)
	return verdict
}

// hint says where to look when a receiver does not let somebody in.
func (h *HTTP) hint(status int) string {
	switch {
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case h.spec.SecretRef == nil:
		return "the receiver wants credentials, and secretRef names none: "
	}
	return fmt.Sprintf("the receiver refuses the credentials in the Secret %s/%s: ", h.spec.SecretRef.Namespace, h.spec.SecretRef.Name)
}

// answer is what a receiver says, or the beginning of it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// post makes a call within the time that it has, in which the answer has to be read, too.
func (h *HTTP) post(ctx context.Context, call pipelineformat.Call, shown credentials) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, h.spec.Timeout.Duration)
	defer cancel()
	address := h.base
	if call.Path != "" {
		address = address.JoinPath(call.Path)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(call.Body))
	if err != nil {
		return answer{}, err
	}
	request.Header = call.Header.Clone()
	request.Header.Set("User-Agent", userAgent)
	// Receivers take a call twice. With this key, which is not sent, the transport knows: it opens another connection when the
	// receiver has closed the idle one.
	request.Header["Idempotency-Key"] = nil
	shown.authorize(request)
	response, err := h.client.Do(request)
	if err != nil {
		// The transport goes on to connect for calls that may follow, without end to who never answers.
		h.client.CloseIdleConnections()
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := read(response)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer (%s): %w", response.Status, err)
	}
	return answer{response.StatusCode, response.Header, body}, nil
}

// read reads as much of a response as is used. A compressed one, which was not requested, counts as empty. So does
// one that makes another protocol of the connection: the time that a call has does not end what is read from that.
func read(response *http.Response) ([]byte, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		body = nil
	}
	return body, err
}
