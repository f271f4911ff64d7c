// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

// A receiver that never responds is left after 30 seconds.
func TestTimeLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		sink func(f *fixture)
		data map[string]string
		host string
	}{
		"slack webhook": {chat, map[string]string{"url": "https://hooks.example.com/services/B000"}, "hooks.example.com"},
		"slack bot":     {bot, map[string]string{"token": botToken}, "slack.com"},
		"teams":         {flow, map[string]string{"url": "http://flow.example.com/"}, "flow.example.com"},
		"webhook":       {signed, map[string]string{"url": "http://hooks.example.com/", "secret": key1}, "hooks.example.com"},
		"mail":          {account, map[string]string{"username": "a", "password": password}, "mail.example.com:587"},
		"mail, implicit TLS": {func(f *fixture) {
			account(f)
			f.sink.Spec.Email.TLS = v1alpha1.EmailImplicitTLS
		}, map[string]string{"username": "a", "password": password}, "mail.example.com:465"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				tt.sink(f)
				f.secret(tt.data)
				f.dial = func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, server) }()
					return client, nil
				}
				begun := time.Now()
				f.expect(tt.host, delivery.Result{Outcome: delivery.Retry, Message: "HOST has not answered within 30s"})
				if took := time.Since(begun); took != 30*time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}
