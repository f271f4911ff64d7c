// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resolveTimeout bounds the resolution of a name whose server may only be known to the proxy.
const resolveTimeout = 5 * time.Second

var (
	errNoPolicy = errors.New("there is no policy for addresses behind proxies")
	loopbacks   = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
)

// target returns what a proxy is asked to connect to: a name only if the server proves it with a certificate, else an address
// that was checked.
//
// A name that cannot be resolved here is possible with a certificate only. Networks that have a proxy often do not resolve
// the names of others.
func (n *Network) target(ctx context.Context, address string, certified bool) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("read the address: %w", err)
	}
	if n.Check == nil {
		return "", errNoPolicy
	}
	addrs, err := n.addresses(ctx, host)
	var unresolved *UnresolvedError
	switch {
	case certified && errors.As(err, &unresolved):
		return address, nil
	case err != nil:
		return "", err
	}
	for _, addr := range addrs {
		if err := n.Check(addr); err != nil {
			return "", err
		}
	}
	if certified {
		return address, nil
	}
	// Proxies often have no IPv6.
	chosen := max(slices.IndexFunc(addrs, netip.Addr.Is4), 0)
	return net.JoinHostPort(addrs[chosen].String(), port), nil
}

// addresses returns the addresses that a host has or resolves to.
func (n *Network) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, isNumeric := numeric(host); isNumeric {
		if !literal.IsValid() {
			return nil, fmt.Errorf("%s is neither a name nor an address in its usual form", host)
		}
		return []netip.Addr{literal}, nil
	}
	// RFC 6761: this host, whatever the resolver here says.
	if name := strings.ToLower(strings.TrimSuffix(host, ".")); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return loopbacks, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	resolver := n.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return nil, &UnresolvedError{Host: host}
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// numeric reports whether a host is an address, in any form, and returns the address. It is not valid for the forms that only
// some programs understand: 127.1, 0x7f000001, 2130706433. A proxy may be one of them.
func numeric(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.WithZone("").Unmap(), true
	}
	last := strings.TrimSuffix(host, ".")
	last = strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	_, err := strconv.ParseUint(last, 0, 64)
	isDigits := last != "" && strings.Trim(last, "0123456789") == ""
	return netip.Addr{}, err == nil || isDigits || strings.HasPrefix(last, "0x") || strings.Contains(host, ":")
}
