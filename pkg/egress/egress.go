// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses the server may connect to on behalf of a user.
//
// Repository and sink URLs come from people who may write a Slipstream object but who
// must not be able to use the server's place in the network: every outgoing connection
// that a user's URL causes is made by one dialer that looks at the address it is about to
// connect to, after name resolution, so that a name cannot be made to point elsewhere in
// between.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 10 * time.Second

// The names --allow-destinations understands besides addresses and CIDRs.
const (
	// Loopback allows 127.0.0.0/8 and ::1.
	Loopback = "loopback"
	// LinkLocal allows 169.254.0.0/16 and fe80::/10, where clouds serve instance credentials, and the addresses of
	// other networks where they do.
	LinkLocal = "link-local"
)

// translated is where translators (NAT64, RFC 6052) have the IPv4 addresses, in the last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// metadata are addresses that are not link-local, where clouds serve instance credentials over IPv6: EC2 and Compute Engine.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}

// Policy says which addresses are refused: loopback, link-local, multicast, unspecified
// and the denied ones (the API server's own), unless they are explicitly allowed. The
// zero value refuses all of these classes and allows every other address.
type Policy struct {
	loopback  bool
	linkLocal bool
	allowed   []netip.Prefix
	denied    []netip.Prefix
}

// NewPolicy parses what --allow-destinations was given: "loopback", "link-local", an IP
// address or a CIDR. denied names addresses (the API server's) that are refused unless a
// CIDR in allow holds them.
func NewPolicy(allow []string, denied ...netip.Addr) (*Policy, error) {
	p := &Policy{}
	for _, a := range denied {
		p.denied = append(p.denied, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
	}
	for _, entry := range allow {
		switch entry {
		case Loopback:
			p.loopback = true
		case LinkLocal:
			p.linkLocal = true
		default:
			prefix, err := parsePrefix(entry)
			if err != nil {
				return nil, err
			}
			p.allowed = append(p.allowed, prefix)
		}
	}
	return p, nil
}

func parsePrefix(entry string) (netip.Prefix, error) {
	if !strings.Contains(entry, "/") {
		if addr, err := netip.ParseAddr(entry); err == nil {
			return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
	}
	prefix, err := netip.ParsePrefix(entry)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("destination %q: use %q, %q, an IP address or a CIDR such as 10.0.0.0/8", entry, Loopback, LinkLocal)
	}
	return prefix.Masked(), nil
}

// RefusedError says that an address may not be connected to.
type RefusedError struct {
	Address string
	Class   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("connections to %s (%s) are refused; --allow-destinations can allow them", e.Address, e.Class)
}

// Check returns a *RefusedError if addr may not be connected to.
func (p *Policy) Check(addr netip.Addr) error {
	named := addr.WithZone("")
	addr = reached(named)
	within := func(prefix netip.Prefix) bool { return prefix.Contains(addr) }
	if slices.ContainsFunc(p.allowed, func(prefix netip.Prefix) bool { return within(prefix) || prefix.Contains(named) }) {
		return nil
	}
	refuse := func(class string) error { return &RefusedError{Address: addr.String(), Class: class} }
	switch {
	case addr.IsLoopback():
		if !p.loopback {
			return refuse("loopback")
		}
		return nil
	case addr.IsLinkLocalUnicast(), addr.IsLinkLocalMulticast(), slices.Contains(metadata, addr):
		if !p.linkLocal {
			return refuse("link-local")
		}
		return nil
	case addr.IsUnspecified(), addr.IsMulticast():
		return refuse("not a unicast address")
	case slices.ContainsFunc(p.denied, within):
		return refuse("the API server")
	}
	return nil
}

// reached is the address at which whoever connects to addr arrives.
func reached(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if bytes := addr.As16(); translated.Contains(addr) {
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// DialContext connects to address if the policy allows the address it resolves to. It has
// the signature that http.Transport and gitrepo.Remote take.
func (p *Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: p.control}
	return dialer.DialContext(ctx, network, address)
}

// control runs after resolution and before connect, for each address tried.
func (p *Policy) control(_, address string, _ syscall.RawConn) error {
	addrPort, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse the resolved address: %w", err)
	}
	return p.Check(addrPort.Addr())
}
