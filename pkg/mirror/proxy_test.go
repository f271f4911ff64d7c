// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/proxytest"
)

const proxyPassword = "hush-hush"

var withPassword = proxytest.Options{Username: "slip", Password: proxyPassword}

// onThisHost returns a network in which addresses of this host are allowed.
func onThisHost(t *testing.T) *proxy.Network {
	t.Helper()
	policy, err := egress.NewPolicy([]string{egress.Loopback})
	if err != nil {
		t.Fatal(err)
	}
	return proxy.NewNetwork(policy, nil)
}

// proxied returns a configuration with the Secrets git and proxy, and what connects to its repository.
func proxied(t *testing.T, url string, git map[string][]byte, ofProxy map[string][]byte) (*repositories, *v1alpha1.GitRepoConfig) {
	t.Helper()
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
	}
	config := &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}, Spec: v1alpha1.GitRepoConfigSpec{
		RepoURL: url, SecretRef: &v1alpha1.SecretReference{Name: "git"}, ProxySecretRef: &v1alpha1.SecretReference{Name: "proxy"},
	}}
	return &repositories{cluster: fake.NewClientset(secret("git", git), secret("proxy", ofProxy)), network: onThisHost(t)}, config
}

// Repositories are pushed to through the proxy of their Secret.
func TestRepositoriesBehindProxies(t *testing.T) {
	servers := newGitServers(t)
	locked := map[string][]byte{"username": []byte("bot"), "password": []byte("pa55"), "ca.crt": servers.authority.Certificate}
	key := map[string][]byte{"identity": servers.private, "known_hosts": servers.knownHosts}
	for name, tt := range map[string]struct {
		start func(*testing.T, proxytest.Options) *proxytest.Proxy
		url   string
		git   map[string][]byte
	}{
		"HTTP": {proxytest.NewHTTP, servers.locked, locked}, "HTTPS": {proxytest.NewHTTPS, servers.locked, locked},
		"SOCKS5": {proxytest.NewSOCKS5, servers.locked, locked}, "SSH": {proxytest.NewSOCKS5, servers.ssh, key},
	} {
		t.Run(name, func(t *testing.T) {
			p := tt.start(t, withPassword)
			repositories, config := proxied(t, tt.url+"/shop.git", tt.git, p.Data())
			if err := pushOnce(t, repositories, config, name); err != nil {
				t.Error(err)
			}
			if len(p.Targets()) == 0 {
				t.Error("the proxy was not used")
			}
		})
	}
}

// What is wrong with a proxy is in the condition.
func TestReasonsOfProxies(t *testing.T) {
	servers := newGitServers(t)
	locked := map[string][]byte{"username": []byte("bot"), "password": []byte("pa55"), "ca.crt": servers.authority.Certificate}
	key := map[string][]byte{"identity": servers.private, "known_hosts": servers.knownHosts}
	p := proxytest.NewHTTP(t, withPassword)
	for name, tt := range map[string]struct {
		url          string
		git          map[string][]byte
		secret       string
		change       func(data map[string][]byte)
		reason, says string
	}{
		"no Secret": {
			servers.locked, locked, "none", nil,
			v1alpha1.ReasonSecretNotFound, "there is no Secret shop/none (spec.proxySecretRef)",
		},
		"no address": {
			servers.locked, locked, "proxy", func(data map[string][]byte) { delete(data, "address") },
			v1alpha1.ReasonSecretInvalid, "Secret shop/proxy (spec.proxySecretRef) has no usable proxy: it has no key address; add it: http://",
		},
		"an HTTP proxy for SSH": {
			servers.ssh, key, "proxy", nil,
			v1alpha1.ReasonSecretInvalid, "has an HTTP proxy: an SSH URL needs a SOCKS5 proxy, with an address that begins with socks5://",
		},
		"other credentials": {
			servers.locked, locked, "proxy", func(data map[string][]byte) { data["password"] = []byte("hush-old") },
			v1alpha1.ReasonRepositoryUnreachable, "(Secret shop/proxy) refuses the credentials (407 Proxy Authentication Required): check username and password",
		},
		"an address that is refused": {
			"https://169.254.169.254", locked, "proxy", nil,
			v1alpha1.ReasonRepositoryUnreachable, "connections to 169.254.169.254 (link-local) are refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := p.Data()
			if tt.change != nil {
				tt.change(data)
			}
			repositories, config := proxied(t, tt.url+"/shop.git", tt.git, data)
			config.Spec.ProxySecretRef.Name = tt.secret
			v := reasonOf(pushOnce(t, repositories, config, name), v1alpha1.ReasonPushFailed)
			if v.Code != tt.reason || !strings.Contains(v.Message, tt.says) {
				t.Errorf("%s: %q, want %s: %q", v.Code, v.Message, tt.reason, tt.says)
			}
			for _, hidden := range []string{proxyPassword, "hush-old", "pa55"} {
				if strings.Contains(v.Message, hidden) {
					t.Errorf("%q shows %q", v.Message, hidden)
				}
			}
		})
	}
}

// A changed Secret counts for the next poll, without a change of the cluster. The first proxy is not used any more.
func TestProxyIsRotated(t *testing.T) {
	before, after := proxytest.NewHTTP(t, withPassword), proxytest.NewSOCKS5(t, withPassword)
	s := newFixture(t, pollOften, func(s *fixture) {
		s.in.repositories[0].Spec.ProxySecretRef = &v1alpha1.SecretReference{Name: "proxy"}
		s.putSecret("proxy", before.Data())
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	if len(before.Targets()) == 0 {
		t.Error("the proxy was not used")
	}
	s.putSecret("proxy", after.Data())
	testkit.EventuallyTrue(t, "the new proxy is used", func() bool { return len(after.Targets()) > 0 })
	before.Close()
	s.cluster.put(configMap("a"), "2")
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
}

// A proxy that ends in the middle of everything is retried.
func TestProxyGoesDown(t *testing.T) {
	p := proxytest.NewHTTP(t, withPassword)
	s := newFixture(t, pollOften, func(s *fixture) {
		s.in.repositories[0].Spec.ProxySecretRef = &v1alpha1.SecretReference{Name: "proxy"}
		s.putSecret("proxy", p.Data())
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	p.Close()
	s.cluster.put(configMap("a"), "2")
	testkit.EventuallyTrue(t, "the condition is about the proxy", func() bool {
		ready := s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
		return strings.Contains(ready.Message, "the proxy "+p.URL+" (Secret shop/proxy) refuses connections")
	})
	s.putSecret("proxy", proxytest.NewHTTP(t, withPassword).Data())
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
}

// The client for the API of a host connects as the remote does: with the authorities that are given, through the proxy, to addresses
// that are allowed.
func TestHostClient(t *testing.T) {
	servers := newGitServers(t)
	p := proxytest.NewHTTP(t, withPassword)
	repositories, config := proxied(t, servers.locked, nil, p.Data())
	client, err := repositories.hostClient(t.Context(), config, servers.authority.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	get := func(url string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := get(servers.locked); err != nil || len(p.Targets()) != 1 {
		t.Errorf("%v, the proxy was asked for %v", err, p.Targets())
	}
	var refused *egress.RefusedError
	if err := get("https://169.254.169.254"); !errors.As(err, &refused) {
		t.Errorf("metadata: %v", err)
	}
}
