// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// schemeSSH is the scheme of servers for which ALL_PROXY is used.
const schemeSSH = "ssh"

// Environment has the proxies of the server's environment, which the operator trusts.
type Environment struct {
	// proxies are those for servers of a scheme.
	proxies map[string]*Proxy
	// forwards returns nil for the servers that NO_PROXY names, and for this host.
	forwards func(*url.URL) (*url.URL, error)
}

// FromEnvironment reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY as other programs in Go do, and ALL_PROXY for SSH, which counts
// if it is a SOCKS5 proxy. Unlike those it returns an error for an address that is none, where connections would be direct.
func FromEnvironment() (*Environment, error) {
	all := cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy"))
	return NewEnvironment(httpproxy.FromEnvironment(), all)
}

// NewEnvironment is FromEnvironment with the values of the variables.
func NewEnvironment(config *httpproxy.Config, all string) (*Environment, error) {
	matching := httpproxy.Config{HTTPProxy: "http://proxy.invalid", NoProxy: config.NoProxy}
	e := &Environment{proxies: map[string]*Proxy{}, forwards: matching.ProxyFunc()}
	for scheme, variable := range map[string]struct{ name, value string }{
		schemeHTTPS: {"HTTPS_PROXY", config.HTTPSProxy}, schemeHTTP: {"HTTP_PROXY", config.HTTPProxy}, schemeSSH: {"ALL_PROXY", all},
	} {
		if variable.value == "" {
			continue
		}
		p, err := fromVariable(variable.name, variable.value)
		if err != nil {
			return nil, err
		}
		if scheme != schemeSSH || p.ForwardsSSH() {
			e.proxies[scheme] = p
		}
	}
	return e, nil
}

// fromVariable parses the value of a variable. Its errors do not quote it.
func fromVariable(name, value string) (*Proxy, error) {
	if !strings.Contains(value, "://") {
		value = schemeHTTP + "://" + value
	}
	address, err := url.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("%s has to be %s", name, allowed)
	}
	p := &Proxy{source: name, trusted: true, username: address.User.Username()}
	p.password, _ = address.User.Password()
	if err := p.setAddress(address); err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	if err := p.checkCredentials(); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", name, err)
	}
	return p, nil
}

// proxy returns the proxy for a server, nil if there is none.
func (e *Environment) proxy(scheme, address string) *Proxy {
	if e == nil || e.proxies[scheme] == nil {
		return nil
	}
	// The port of the address is explicit, so the scheme does not matter.
	if through, err := e.forwards(&url.URL{Scheme: schemeHTTP, Host: address}); err != nil || through == nil {
		return nil
	}
	return e.proxies[scheme]
}
