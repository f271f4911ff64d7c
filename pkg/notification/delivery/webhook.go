// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"net/url"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// webhook posts CloudEvents, signed as Standard Webhooks.
type webhook struct {
	poster
	source string
	spec   *v1alpha1.WebhookSink
	// url is nil if it is in the Secret.
	url *url.URL
}

var _ Receiver = &webhook{}

func newWebhook(config Config, secrets secretReader, spec *v1alpha1.WebhookSink) (*webhook, error) {
	w := &webhook{source: config.Source, spec: spec}
	var err error
	if spec.URL != "" {
		if w.url, err = url.Parse(spec.URL); err != nil {
			return nil, fmt.Errorf("read url: %w", err)
		}
	}
	w.poster, err = newPoster(config, secrets, spec.CABundle, spec.ProxySecretRef)
	return w, err
}

// Deliver sends a message as a CloudEvent.
func (w *webhook) Deliver(ctx context.Context, m *message.Message, _ string) Result {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	header, body, err := format.CloudEvent(m, w.source)
	if err != nil {
		return unencodable(err)
	}
	request, keys, err := w.request(ctx)
	if err != nil {
		return failed(err)
	}
	request.header, request.body = header.Clone(), body
	sign(request.header, keys, m.ID, w.clock.Now(), body)
	_, result := w.send(ctx, request)
	return result
}

// request returns a request without its content, and the keys that sign it.
func (w *webhook) request(ctx context.Context) (post, []signingKey, error) {
	request := post{url: w.url, urlField: "webhook.url"}
	if w.spec.SecretRef == nil {
		if w.url == nil {
			return post{}, nil, fmt.Errorf("neither webhook.url nor webhook.secretRef is set")
		}
		return request, nil, nil
	}
	secret, err := w.secrets.read(ctx, w.spec.SecretRef.Name)
	if err != nil {
		return post{}, nil, err
	}
	if request.token, err = readToken(secret); err != nil {
		return post{}, nil, err
	}
	keys, err := readSigningKeys(secret)
	if err != nil {
		return post{}, nil, err
	}
	for _, key := range keys {
		request.secrets = append(request.secrets, key.text)
	}
	return request, keys, request.addURL(secret)
}

// addURL takes the URL from a Secret if the spec has none.
func (p *post) addURL(secret outbound.Secret) (err error) {
	if p.url != nil {
		return nil
	}
	if p.url, err = readURL(secret); err != nil {
		return err
	}
	p.urlField = "url in the Secret " + secret.Name
	p.secrets = append(p.secrets, urlSecrets(p.url)...)
	return nil
}
