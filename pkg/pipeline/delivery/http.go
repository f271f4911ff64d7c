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
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// userAgent is the User-Agent header of calls.
const userAgent = "slipstream"

// Config is what all HTTP sinks share.
type Config struct {
	// Secrets reads the credentials for each batch.
	Secrets corev1client.SecretsGetter
	Dial    Dial
	Clock   clock.PassiveClock
}

// HTTP sends batches to a server, over connections of its own.
type HTTP struct {
	config Config
	source format.Source
	spec   v1alpha1.HTTPSink
	base   *url.URL
	format format.Format
	client *http.Client
}

var _ Sink = &HTTP{}

// NewHTTP returns the sink for a spec, which must have its defaults. A changed spec needs a new sink.
func NewHTTP(config Config, source format.Source, spec v1alpha1.HTTPSink) (*HTTP, error) {
	base, err := url.Parse(spec.URL)
	if err != nil {
		return nil, fmt.Errorf("read url: %w", err)
	}
	encoding, err := format.ByName(spec.Format)
	if err != nil {
		return nil, err
	}
	client, err := newClient(config.Dial, spec.CABundle)
	if err != nil {
		return nil, err
	}
	return &HTTP{config: config, source: source, spec: spec, base: base, format: encoding, client: client}, nil
}

// Close closes idle connections. A connection whose response is still being read closes after its idle timeout.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Deliver makes the calls of a batch.
func (h *HTTP) Deliver(ctx context.Context, batch item.Batch, record RecordFunc) error {
	calls, err := h.format.Calls(batch, h.source)
	if err != nil {
		return err
	}
	creds, err := readCredentials(ctx, h.config.Secrets, h.spec.SecretRef)
	for _, call := range calls {
		result := format.Result{Outcome: format.Retry}
		if err == nil {
			result = h.call(ctx, call, creds)
		} else {
			result.Message = creds.redact(err.Error())
		}
		// A response is recorded even when ctx has ended meanwhile.
		if result.Outcome == format.Retry && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := record(call.Keys, result); err != nil {
			return fmt.Errorf("record the result of batch %s: %w", batch.ID, err)
		}
		if result.Outcome == format.Retry {
			return nil
		}
	}
	return nil
}

// call makes a call and interprets the response.
func (h *HTTP) call(ctx context.Context, call format.Call, creds credentials) format.Result {
	received, err := h.post(ctx, call, creds)
	if err != nil {
		return format.Result{Outcome: format.Retry, Message: creds.redact(explain(err, h.base.Host, h.spec.Timeout.Duration))}
	}
	result := h.format.Interpret(call, received.status, received.header, received.body)
	if result.Outcome == format.Retry {
		result.RetryAfter = max(min(result.RetryAfter, maxRetryAfter), retryAfter(received.header, h.config.Clock.Now()))
	}
	result.Message = creds.redact(h.authHint(received.status) + result.Message)
	return result
}

// authHint says what to check when a receiver refuses the credentials. It is empty for other statuses.
func (h *HTTP) authHint(status int) string {
	switch {
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case h.spec.SecretRef == nil:
		return "the receiver wants credentials, and secretRef names none: "
	}
	return fmt.Sprintf("the receiver refuses the credentials in the Secret %s/%s: ", h.spec.SecretRef.Namespace, h.spec.SecretRef.Name)
}

// response is a response with the first bytes of its body.
type response struct {
	status int
	header http.Header
	body   []byte
}

// post makes a call. The timeout includes reading the response.
func (h *HTTP) post(ctx context.Context, call format.Call, creds credentials) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, h.spec.Timeout.Duration)
	defer cancel()
	request, err := h.newRequest(ctx, call)
	if err != nil {
		return response{}, err
	}
	creds.authorize(request)
	received, err := h.client.Do(request)
	if err != nil {
		// Otherwise the transport keeps dialing for later calls, forever if the host never responds.
		h.client.CloseIdleConnections()
		return response{}, err
	}
	defer func() { _ = received.Body.Close() }()
	body, err := readBody(received)
	if err != nil {
		return response{}, fmt.Errorf("read the answer (%s): %w", received.Status, err)
	}
	return response{received.StatusCode, received.Header, body}, nil
}

func (h *HTTP) newRequest(ctx context.Context, call format.Call) (*http.Request, error) {
	address := h.base
	if call.Path != "" {
		address = address.JoinPath(call.Path)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(call.Body))
	if err != nil {
		return nil, err
	}
	request.Header = call.Header.Clone()
	request.Header.Set("User-Agent", userAgent)
	// Calls are idempotent. This key, which the transport does not send, makes it retry on a new connection when the receiver has
	// closed the idle one.
	request.Header["Idempotency-Key"] = nil
	return request, nil
}

// readBody reads the part of a response that is used. A compressed body, which was not requested, counts as empty, and so does the
// stream after a protocol switch, which the timeout of the call does not end.
func readBody(received *http.Response) ([]byte, error) {
	if received.StatusCode == http.StatusSwitchingProtocols {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(received.Body, maxResponse))
	if encoding := received.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		body = nil
	}
	return body, err
}
