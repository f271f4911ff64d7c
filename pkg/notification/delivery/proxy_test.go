// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

const proxyPassword = "hush-hush"

var withPassword = proxytest.Options{Username: "slip", Password: proxyPassword}

// proxySecret creates or updates the Secret with the proxy of the sink.
func (f *fixture) proxySecret(data map[string][]byte) {
	f.Helper()
	f.secrets = append(f.secrets, proxyPassword)
	ref := &v1alpha1.SecretReference{Name: "proxy"}
	switch spec := &f.sink.Spec; {
	case spec.Slack != nil:
		spec.Slack.ProxySecretRef = ref
	case spec.Teams != nil:
		spec.Teams.ProxySecretRef = ref
	default:
		spec.Webhook.ProxySecretRef = ref
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "proxy"}, Data: data}
	secrets := f.cluster.CoreV1().Secrets("teams")
	if _, err := secrets.Update(f.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(f.Context(), secret, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// Each receiver is reached through each kind of proxy.
func TestProxyOfASecret(t *testing.T) {
	for kind, start := range map[string]func(*testing.T, proxytest.Options) *proxytest.Proxy{
		"HTTP": proxytest.NewHTTP, "HTTPS": proxytest.NewHTTPS, "SOCKS5": proxytest.NewSOCKS5,
	} {
		for name, arrange := range fixtures() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				f, receiver := arrange(t)
				p := start(t, withPassword)
				f.proxySecret(p.Data())
				if got := f.deliver(about(v1alpha1.NotifyPrompted), ""); got.Outcome != delivery.Delivered {
					t.Errorf("got %+v", got)
				}
				if asked := p.Targets(); !slices.Equal(asked, []string{hostOf(f, receiver)}) {
					t.Errorf("the proxy was asked for %v", asked)
				}
				for _, request := range receiver.Requests() {
					if request.Header.Get("Proxy-Authorization") != "" {
						t.Error("the receiver gets the credentials of the proxy")
					}
				}
			})
		}
	}
}

func TestProxyOfTheEnvironment(t *testing.T) {
	f, receiver := signedWebhook(t, key1)
	_, port, _ := strings.Cut(hostOf(f, receiver), ":")
	p := proxytest.NewHTTP(t, proxytest.Options{Hosts: map[string]string{"example.com:" + port: hostOf(f, receiver)}})
	f.sink.Spec.Webhook.URL = strings.Replace(receiver.URL, "127.0.0.1", "example.com", 1)
	f.resolver = proxytest.NewResolver(t, func(string) []netip.Addr { return nil })
	var err error
	if f.environment, err = proxy.NewEnvironment(&httpproxy.Config{HTTPSProxy: p.URL}, ""); err != nil {
		t.Fatal(err)
	}
	if got := f.deliver(about(v1alpha1.NotifyPrompted), ""); got.Outcome != delivery.Delivered || len(p.Targets()) != 1 {
		t.Errorf("got %+v, the proxy was asked for %v", got, p.Targets())
	}
}

// A changed Secret counts for the next message, without a new receiver.
func TestRotatedProxy(t *testing.T) {
	f, _ := slackBot(t)
	p := proxytest.NewHTTP(t, withPassword)
	f.proxySecret(map[string][]byte{"address": []byte(p.URL), "username": []byte("slip"), "password": []byte("hush-old")})
	sent := f.receiver()
	got := f.deliverTo(t.Context(), sent, about(v1alpha1.NotifyFailed), "")
	want := "the proxy " + p.URL + " (Secret teams/proxy) refuses the credentials (407 Proxy Authentication Required): check username and password"
	if got.Outcome != delivery.Retry || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	f.proxySecret(p.Data())
	if got := f.deliverTo(t.Context(), sent, about(v1alpha1.NotifyFailed), ""); got.Outcome != delivery.Delivered {
		t.Errorf("with the new password: %+v", got)
	}
}

// Failures on the way are explained, and retried.
func TestFailuresOfProxies(t *testing.T) {
	for name, tt := range map[string]struct {
		options proxytest.Options
		arrange func(f *fixture, p *proxytest.Proxy)
		want    delivery.Result
	}{
		"no Secret": {withPassword, func(f *fixture, _ *proxytest.Proxy) { f.sink.Spec.Teams.ProxySecretRef.Name = "none" }, delivery.Result{
			Reason: v1alpha1.ReasonSecretNotFound, Message: "there is no Secret teams/none, which proxySecretRef names; create it",
		}},
		"another scheme": {withPassword, func(f *fixture, _ *proxytest.Proxy) {
			f.proxySecret(map[string][]byte{"address": []byte("ftp://proxy.example.com")})
		}, delivery.Result{
			Reason: v1alpha1.ReasonSecretInvalid, Message: "the Secret teams/proxy has no usable proxy: its address has to be http://, https:// or socks5:// " +
				"and a host, with a port unless it is 80, 443 or 1080, such as http://proxy.example.com:3128",
		}},
		"not running": {withPassword, func(_ *fixture, p *proxytest.Proxy) { p.Close() }, delivery.Result{
			Message: "the proxy PROXY (Secret teams/proxy) refuses connections: does it run, and is its port right?",
		}},
		"forbidden": {proxytest.Options{Status: http.StatusForbidden}, nil, delivery.Result{
			Message: "the proxy PROXY (Secret teams/proxy) forbids connections to HOST (403 Forbidden): allow it there",
		}},
		"ends within the handshake": {proxytest.Options{CutAfter: 10}, nil, delivery.Result{
			Message: "the call to HOST failed: unexpected EOF; through the proxy PROXY (Secret teams/proxy)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f, receiver := teamsWorkflow(t)
			p := proxytest.NewHTTP(t, tt.options)
			f.proxySecret(p.Data())
			if tt.arrange != nil {
				tt.arrange(f, p)
			}
			tt.want.Outcome, tt.want.Message = delivery.Retry, strings.ReplaceAll(tt.want.Message, "PROXY", p.URL)
			f.expect(hostOf(f, receiver), tt.want)
		})
	}
}

// The URL in a Secret is checked behind a proxy, too.
func TestRefusedAddressBehindAProxy(t *testing.T) {
	f, _ := slackWebhook(t)
	p := proxytest.NewHTTP(t, proxytest.Options{})
	f.proxySecret(p.Data())
	f.secret(map[string]string{"url": "http://169.254.169.254/services"})
	f.expect("", delivery.Result{
		Outcome: delivery.Retry,
		Message: "connections to 169.254.169.254 (link-local) are refused; --allow-destinations can allow them; through the proxy " + p.URL + " (Secret teams/proxy)",
	})
	if asked := p.Targets(); len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}
