// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// The schemes of proxies.
const (
	schemeHTTP   = "http"
	schemeHTTPS  = "https"
	schemeSOCKS5 = "socks5"
	// schemeSOCKS5H is another name of socks5 in environments.
	schemeSOCKS5H = "socks5h"
)

const (
	// maxSOCKS is the longest username and password of RFC 1929, in bytes.
	maxSOCKS = 255
	// maxCredential is longer than the usernames and passwords that HTTP proxies accept, in bytes.
	maxCredential = 4 << 10
	// maxAddress bounds an address, in bytes.
	maxAddress = 2 << 10
	maxPort    = 1<<16 - 1
)

// allowed describes addresses in errors.
const allowed = "http://, https:// or socks5:// and a host, with a port unless it is 80, 443 or 1080, such as http://proxy.example.com:3128"

// Proxy is an HTTP, HTTPS or SOCKS5 proxy. No formatting verb prints its credentials.
type Proxy struct {
	scheme string
	// host is the host with its port.
	host               string
	username, password string
	// caBundle has the authorities of an HTTPS proxy in PEM form. It is empty for those of the system.
	caBundle []byte
	// source is where the proxy is configured, such as: Secret shop/proxy.
	source string
	// trusted is set for a proxy of the operator, which may have any address.
	trusted bool
}

var _ fmt.Formatter = &Proxy{}

// String returns the address without credentials, and where it is configured.
func (p *Proxy) String() string { return fmt.Sprintf("%s://%s (%s)", p.scheme, p.host, p.source) }

// Format writes String for every verb.
func (p *Proxy) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, p.String()) }

// Credentials returns the username and the password, for removing them from texts.
func (p *Proxy) Credentials() (username, password string) {
	if p == nil {
		return "", ""
	}
	return p.username, p.password
}

// Equal reports whether both are the same proxy, with the same credentials and authorities. Either can be nil.
func (p *Proxy) Equal(other *Proxy) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.scheme == other.scheme && p.host == other.host && p.username == other.username && p.password == other.password &&
		bytes.Equal(p.caBundle, other.caBundle) && p.source == other.source && p.trusted == other.trusted
}

// ForwardsSSH reports whether SSH connections can be made through the proxy.
func (p *Proxy) ForwardsSSH() bool { return p.isSOCKS() }

func (p *Proxy) isSOCKS() bool { return p.scheme == schemeSOCKS5 }

// The keys of a Secret. The authorities can have any of the names that they have in Secrets for Git.
const (
	keyAddress  = "address"
	keyUsername = "username"
	keyPassword = "password"
)

var keysAuthority = []string{"caBundle", "ca.crt", "caFile"}

// FromSecret returns the proxy in the data of a Secret. No error quotes a value.
func FromSecret(name string, data map[string][]byte) (*Proxy, error) {
	value := func(key string) string { return strings.TrimRight(string(data[key]), "\r\n") }
	raw := strings.TrimSpace(value(keyAddress))
	if raw == "" {
		return nil, fmt.Errorf("it has no key %s; add it: %s", keyAddress, allowed)
	}
	address, err := url.Parse(raw)
	switch {
	case err != nil, len(raw) > maxAddress:
		return nil, fmt.Errorf("its %s has to be %s", keyAddress, allowed)
	case address.User != nil:
		return nil, fmt.Errorf("its %s has a user; put credentials into the keys username and password", keyAddress)
	case strings.Trim(address.Path, "/") != "" || address.RawQuery != "" || address.Fragment != "":
		return nil, fmt.Errorf("its %s has more than a host; it has to be %s", keyAddress, allowed)
	}
	p := &Proxy{source: "Secret " + name, username: value(keyUsername), password: value(keyPassword)}
	if err := p.setAddress(address); err != nil {
		return nil, fmt.Errorf("its %s %w", keyAddress, err)
	}
	for _, key := range keysAuthority {
		if len(data[key]) > 0 && len(p.caBundle) == 0 && p.scheme == schemeHTTPS {
			p.caBundle = data[key]
		}
	}
	if err := p.checkCredentials(); err != nil {
		return nil, err
	}
	if _, err := p.tlsConfig(); err != nil {
		return nil, err
	}
	return p, nil
}

// setAddress takes the scheme, the host and the port from a URL.
func (p *Proxy) setAddress(address *url.URL) error {
	ports := map[string]string{schemeHTTP: "80", schemeHTTPS: "443", schemeSOCKS5: "1080", schemeSOCKS5H: "1080"}
	port, known := ports[address.Scheme]
	if !known || address.Hostname() == "" {
		return errors.New("has to be " + allowed)
	}
	if explicit := address.Port(); explicit != "" {
		port = explicit
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > maxPort {
		return errors.New("has a port that is not from 1 to 65535")
	}
	p.scheme, p.host = strings.TrimSuffix(address.Scheme, "h"), net.JoinHostPort(address.Hostname(), port)
	return nil
}

func (p *Proxy) checkCredentials() error {
	limit := maxCredential
	if p.isSOCKS() {
		limit = maxSOCKS
	}
	switch {
	case p.username == "" && p.password != "":
		return errors.New("it has a password and no username; add it")
	case strings.ContainsFunc(p.username+p.password, unicode.IsControl):
		return errors.New("its username or password has characters that no proxy accepts, such as a line break; write it again")
	case !p.isSOCKS() && strings.Contains(p.username, ":"):
		return errors.New("its username has a colon, which is not possible for an HTTP proxy")
	case len(p.username) > limit || len(p.password) > limit:
		return fmt.Errorf("its username or password is longer than %d bytes", limit)
	}
	return nil
}
