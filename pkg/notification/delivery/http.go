// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// poster posts to HTTP servers.
type poster struct {
	client *outbound.Client
	clock  clock.PassiveClock
	// secrets and proxyRef are for the Secret with the proxy; proxyRef is nil without one.
	secrets  secretReader
	proxyRef *v1alpha1.SecretReference
}

func newPoster(config Config, secrets secretReader, caBundle []byte, proxyRef *v1alpha1.SecretReference) (poster, error) {
	client, err := outbound.NewClient(config.Network, caBundle)
	return poster{client, config.Clock, secrets, proxyRef}, err
}

// Close closes idle connections.
func (p poster) Close() { p.client.Close() }

// post is one request.
type post struct {
	url    *url.URL
	header http.Header
	body   []byte
	// token is sent as a bearer token, unless it is empty.
	token string
	// secrets are those that the receiver could quote.
	secrets []string
	// urlField is where the user has set the URL, such as: url in the Secret shop/chat.
	urlField string
}

// jsonHeader returns the headers of a request with JSON.
func jsonHeader() http.Header {
	return http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Accept": {"application/json"}}
}

// webhookPost returns the request to an incoming webhook, whose URL is the credential.
func webhookPost(secret outbound.Secret, body []byte) (post, error) {
	u, err := readURL(secret)
	if err != nil {
		return post{}, err
	}
	return post{url: u, header: jsonHeader(), body: body, secrets: urlSecrets(u), urlField: "url in the Secret " + secret.Name}, nil
}

// send makes a request and returns the response, if there is one, with the result that its status determines.
func (p poster) send(ctx context.Context, request post) (outbound.Response, Result) {
	through, err := p.useProxy(ctx)
	if err != nil {
		return outbound.Response{}, failed(err)
	}
	redactor := outbound.NewRedactor(append(request.secrets, request.token)).Joined(outbound.OfProxy(through))
	response, err := p.do(ctx, request)
	if err != nil {
		server := outbound.Server{
			Host: request.url.Host, HostField: "the host of " + request.urlField, PortField: "the port of " + request.urlField,
			Timeout: timeLimit, Proxy: p.client.Proxy(request.url),
		}
		return response, Result{Outcome: Retry, Message: show(redactor, server.Explain(err))}
	}
	return response, p.interpret(request, response, redactor)
}

// useProxy has the next request use the proxy in its Secret, which it returns, or those of the environment if there is none.
func (p poster) useProxy(ctx context.Context) (*proxy.Proxy, error) {
	if p.proxyRef == nil {
		return nil, nil
	}
	through, err := p.secrets.proxy(ctx, p.proxyRef.Name)
	if err != nil {
		return nil, err
	}
	return through, p.client.UseProxy(through)
}

func (p poster) do(ctx context.Context, request post) (outbound.Response, error) {
	made, err := http.NewRequestWithContext(ctx, http.MethodPost, request.url.String(), bytes.NewReader(request.body))
	if err != nil {
		return outbound.Response{}, err
	}
	made.Header = request.header.Clone()
	if request.token != "" {
		made.Header.Set("Authorization", "Bearer "+request.token)
	}
	return p.client.Do(made)
}

// interpret returns the result of a response whose status determines it.
func (p poster) interpret(request post, response outbound.Response, redactor outbound.Redactor) Result {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", response.Status, http.StatusText(response.Status)))
	if quoted := strings.TrimSpace(string(response.Body)); quoted != "" {
		text += ": " + quoted
	}
	result := Result{Outcome: outcomeOf(response.Status), Message: show(redactor, hint(request, response.Status)+text)}
	if result.Outcome == Retry {
		result.RetryAfter = outbound.RetryAfter(response.Header, p.clock.Now())
	}
	return result
}

// outcomeOf returns the outcome of a status. Statuses that are about the content of a request reject it. Those about credentials, addresses
// and permissions can be repaired without another message.
func outcomeOf(status int) Outcome {
	switch {
	case status/100 == 2:
		return Delivered
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		return Rejected
	}
	return Retry
}

// hint says what to check for a status that the user can repair.
func hint(request post, status int) string {
	switch {
	case status/100 == 3:
		return fmt.Sprintf("redirects are not followed; put the address to which it points into %s: ", request.urlField)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Sprintf("%s refuses the credentials: ", request.url.Host)
	case status == http.StatusNotFound || status == http.StatusGone:
		return fmt.Sprintf("%s does not know %s: ", request.url.Host, request.urlField)
	}
	return ""
}

// show returns the printable line that is shown of a text from a receiver.
func show(redactor outbound.Redactor, text string) string {
	return summary.Cut(summary.Line(redactor.Redact(text)), maxShown)
}
