// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// The proxies of the environment are used unless the flag says otherwise. A variable that is no address of a proxy stops the server.
func TestProxyFromEnvironment(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
	opts := options.New(apiserver.NewCodecs(apiserver.NewScheme()))
	used := func() string {
		network, err := newNetwork(opts, &rest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if proxy := network.Through(nil).Proxy("https", "git.example.com:443"); proxy != nil {
			return proxy.String()
		}
		return ""
	}
	if got := used(); got != "http://proxy.example.com:3128 (HTTPS_PROXY)" {
		t.Errorf("by default: %q", got)
	}
	opts.Git.ProxyFromEnvironment = false
	if got := used(); got != "" {
		t.Errorf("switched off: %q", got)
	}
	t.Setenv("HTTPS_PROXY", "ftp://proxy.example.com")
	if got := used(); got != "" {
		t.Errorf("switched off, and not valid: %q", got)
	}
	opts.Git.ProxyFromEnvironment = true
	if _, err := newNetwork(opts, &rest.Config{}); err == nil || !strings.HasPrefix(err.Error(), "read the proxies of the environment: HTTPS_PROXY has to be http://") {
		t.Errorf("not valid: %v", err)
	}
}
