// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

func TestEnvironment(t *testing.T) {
	const all = "socks5://socks.example.com"
	config := &httpproxy.Config{
		HTTPProxy: "plain.example.com:3128", HTTPSProxy: "https://slip:" + password + "@secure.example.com",
		NoProxy: "git.example.com,.internal,10.0.0.0/8,host.example.com:8443",
	}
	environment, err := proxy.NewEnvironment(config, all)
	if err != nil {
		t.Fatal(err)
	}
	dialer := (&proxy.Network{Environment: environment}).Through(nil)
	for target, want := range map[string]string{
		"http receiver.example.com:80":   "http://plain.example.com:3128 (HTTP_PROXY)",
		"https receiver.example.com:443": "https://secure.example.com:443 (HTTPS_PROXY)",
		"ssh receiver.example.com:22":    "socks5://socks.example.com:1080 (ALL_PROXY)",
		"https 192.0.2.1:443":            "https://secure.example.com:443 (HTTPS_PROXY)",
		"https git.example.com:443":      "",
		"ssh git.example.com:22":         "",
		"http chat.internal:8080":        "",
		"https 10.1.2.3:443":             "",
		"https host.example.com:8443":    "",
		"https host.example.com:443":     "https://secure.example.com:443 (HTTPS_PROXY)",
		"https localhost:443":            "",
		"http 127.0.0.1:80":              "",
		"https [::1]:443":                "",
	} {
		scheme, address, _ := strings.Cut(target, " ")
		got := ""
		if used := dialer.Proxy(scheme, address); used != nil {
			got = used.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}

// A proxy that a Secret names is used for all servers, also those in NO_PROXY.
func TestSecretBeforeEnvironment(t *testing.T) {
	environment, err := proxy.NewEnvironment(&httpproxy.Config{HTTPSProxy: "https://theirs", NoProxy: "git.example.com"}, "")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := proxy.FromSecret("shop/proxy", secret("address", "http://mine"))
	if err != nil {
		t.Fatal(err)
	}
	dialer := (&proxy.Network{Environment: environment}).Through(mine)
	for _, address := range []string{"git.example.com:443", "other.example.com:443"} {
		if got := dialer.Proxy("https", address); got != mine {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// Without a proxy for SSH, connections are direct. An HTTP proxy is none.
func TestEnvironmentWithoutSOCKS(t *testing.T) {
	environment, err := proxy.NewEnvironment(&httpproxy.Config{HTTPSProxy: "http://proxy"}, "http://proxy")
	if err != nil {
		t.Fatal(err)
	}
	if got := (&proxy.Network{Environment: environment}).Through(nil).Proxy("ssh", "git.example.com:22"); got != nil {
		t.Errorf("got %s", got)
	}
}

// The variables are those of other programs. An address that is none is an error: connections would be direct.
func TestFromEnvironment(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	for _, variable := range []struct{ name, scheme, shown string }{
		{"HTTPS_PROXY", "https", "HTTPS_PROXY"}, {"https_proxy", "https", "HTTPS_PROXY"},
		{"http_proxy", "http", "HTTP_PROXY"}, {"ALL_PROXY", "ssh", "ALL_PROXY"}, {"all_proxy", "ssh", "ALL_PROXY"},
	} {
		t.Setenv(variable.name, "socks5://proxy")
		environment, err := proxy.FromEnvironment()
		if err != nil {
			t.Fatal(err)
		}
		used := (&proxy.Network{Environment: environment}).Through(nil).Proxy(variable.scheme, "a.example.com:1")
		if used == nil || used.String() != "socks5://proxy:1080 ("+variable.shown+")" {
			t.Errorf("%s: %v", variable.name, used)
		}
		for _, value := range []string{"ftp://" + password, "http://[" + password, "http://proxy:99999", "http://:" + password + "@proxy"} {
			t.Setenv(variable.name, value)
			_, err := proxy.FromEnvironment()
			if err == nil || !strings.HasPrefix(err.Error(), variable.shown) || strings.Contains(err.Error(), password) {
				t.Errorf("%s=%s: %v", variable.name, value, err)
			}
		}
		t.Setenv(variable.name, "")
	}
}
