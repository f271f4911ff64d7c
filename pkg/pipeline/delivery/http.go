// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Config is what all HTTP sinks share.
type Config struct {
	// Secrets reads the credentials for each batch.
	Secrets corev1client.SecretsGetter
	Network *proxy.Network
	Clock   clock.PassiveClock
}

// HTTP sends batches to a server, over connections of its own.
type HTTP struct {
	config Config
	source format.Source
	spec   v1alpha1.HTTPSink
	base   *url.URL
	format format.Format
	client *outbound.Client
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
	client, err := outbound.NewClient(config.Network, spec.CABundle)
	if err != nil {
		return nil, err
	}
	return &HTTP{config: config, source: source, spec: spec, base: base, format: encoding, client: client}, nil
}

// Close closes idle connections. A connection whose response is still being read closes after its idle timeout.
func (h *HTTP) Close() { h.client.Close() }

// Deliver makes the calls of a batch.
func (h *HTTP) Deliver(ctx context.Context, batch item.Batch, record RecordFunc) error {
	calls, err := h.format.Calls(batch, h.source)
	if err != nil {
		return err
	}
	creds, err := h.prepare(ctx)
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

// prepare reads the credentials, and the proxy of the next calls.
func (h *HTTP) prepare(ctx context.Context) (credentials, error) {
	creds, err := readCredentials(ctx, h.config.Secrets, h.spec.SecretRef)
	if err != nil {
		return creds, err
	}
	var through *proxy.Proxy
	if ref := h.spec.ProxySecretRef; ref != nil {
		through, err = outbound.ReadProxy(ctx, h.config.Secrets.Secrets(ref.Namespace).Get, ref.Namespace, ref.Name)
		if err != nil {
			return creds, err
		}
	}
	creds.redactor = creds.redactor.Joined(outbound.OfProxy(through))
	return creds, h.client.UseProxy(through)
}

// call makes a call and interprets the response.
func (h *HTTP) call(ctx context.Context, call format.Call, creds credentials) format.Result {
	received, err := h.post(ctx, call, creds)
	if err != nil {
		return format.Result{Outcome: format.Retry, Message: creds.redact(h.explain(err))}
	}
	result := h.format.Interpret(call, received.Status, received.Header, received.Body)
	if result.Outcome == format.Retry {
		result.RetryAfter = max(min(result.RetryAfter, outbound.MaxRetryAfter), outbound.RetryAfter(received.Header, h.config.Clock.Now()))
	}
	result.Message = creds.redact(h.authHint(received.Status) + result.Message)
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

// explain describes why a call got no response.
func (h *HTTP) explain(err error) string {
	server := outbound.Server{
		Host: h.base.Host, HostField: "the host of url", PortField: "the port of url",
		Timeout: h.spec.Timeout.Duration, TimeoutHint: "a longer timeout may help", Proxy: h.client.Proxy(h.base),
	}
	return server.Explain(err)
}

// post makes a call. The timeout includes reading the response.
func (h *HTTP) post(ctx context.Context, call format.Call, creds credentials) (outbound.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, h.spec.Timeout.Duration)
	defer cancel()
	request, err := h.newRequest(ctx, call)
	if err != nil {
		return outbound.Response{}, err
	}
	creds.authorize(request)
	return h.client.Do(request)
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
	return request, nil
}
