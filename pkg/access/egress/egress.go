// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses the server is allowed to connect to on behalf of a user.
//
// Users set the URLs of repositories and sinks, but must not be able to use the server's position in the network. One
// dialer makes all connections to such URLs. It checks each address after name resolution and right before the
// connection, so that a name cannot resolve to another address in between. Classes and Forms are everything that is
// rejected, and the documentation is generated from them.
package egress

import (
	"context"
	"errors"
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

// Policy rejects the addresses of all classes, unless they are explicitly allowed. The zero value allows none of them,
// knows no API server, and allows every other address.
type Policy struct {
	words   []string
	allowed []netip.Prefix
	// apiServers are the addresses by which the server reaches kube-apiserver.
	apiServers []netip.Addr
	// interfaces returns the addresses and networks of the host's interfaces. It is net.InterfaceAddrs if it is nil.
	interfaces func() ([]net.Addr, error)
}

// NewPolicy parses the values of --allow-destinations: a word, an IP address or a CIDR. apiServers are rejected unless
// an address or a CIDR in allow contains them.
func NewPolicy(allow []string, apiServers ...netip.Addr) (*Policy, error) {
	p := &Policy{}
	for _, addr := range apiServers {
		p.apiServers = append(p.apiServers, addr.Unmap())
	}
	for _, entry := range allow {
		if slices.Contains(Words(), entry) {
			p.words = append(p.words, entry)
			continue
		}
		prefix, err := parsePrefix(entry)
		if err != nil {
			return nil, err
		}
		p.allowed = append(p.allowed, prefix)
	}
	return p, nil
}

// parsePrefix parses an address or a CIDR. An IPv4-mapped one means the IPv4 addresses.
func parsePrefix(entry string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(entry)
	if addr, addrErr := netip.ParseAddr(entry); addrErr == nil && addr.Zone() == "" {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("destination %q: use %s, an IP address without a zone, or a CIDR such as 10.0.0.0/8",
			entry, strings.Join(Words(), ", "))
	}
	const mapped = 96
	if prefix.Addr().Is4In6() && prefix.Bits() >= mapped {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
	}
	return prefix.Masked(), nil
}

// RefusedError is returned for an address that the policy rejects.
type RefusedError struct {
	// Address is the rejected address.
	Address string
	// Via is the address of the connection if that one embeds Address.
	Via   string
	Class string
}

func (e *RefusedError) Error() string {
	via := ""
	if e.Via != "" {
		via = fmt.Sprintf(", where %s leads,", e.Via)
	}
	return fmt.Sprintf("connections to %s (%s)%s are refused; --allow-destinations can allow them", e.Address, e.Class, via)
}

// Check returns a *RefusedError if a connection to addr is not allowed. Every address that the connection can lead to
// must be allowed: allowing a translator's address does not allow the address behind it.
func (p *Policy) Check(addr netip.Addr) error {
	if !addr.IsValid() {
		return errors.New("there is no address to connect to")
	}
	all := reached(addr)
	for _, each := range all {
		class, err := p.refusalOf(each)
		if err != nil {
			return err
		}
		if class == "" {
			continue
		}
		refused := &RefusedError{Address: each.String(), Class: class}
		if each != all[0] {
			refused.Via = all[0].String()
		}
		return refused
	}
	return nil
}

// refusalOf returns the name of the class that rejects an address, or an empty string.
func (p *Policy) refusalOf(addr netip.Addr) (string, error) {
	if slices.ContainsFunc(p.allowed, func(prefix netip.Prefix) bool { return prefix.Contains(addr) }) {
		return "", nil
	}
	for _, class := range Classes() {
		contains, err := p.contains(class, addr)
		switch {
		case err != nil:
			return "", err
		case contains && class.Word != "" && slices.Contains(p.words, class.Word):
			// These are addresses of the host, and possibly of kube-apiserver.
			if class.Name == loopback.Name {
				return "", nil
			}
		case contains:
			return class.Name, nil
		}
	}
	return "", nil
}

// contains reports whether a class contains an address.
func (p *Policy) contains(class Class, addr netip.Addr) (bool, error) {
	switch class.Name {
	case apiServer.Name:
		return slices.Contains(p.apiServers, addr), nil
	case host.Name:
		return p.isHost(addr)
	}
	return class.contains(addr), nil
}

// isHost reports whether a network interface has an address now. Interfaces change, so the result is not cached.
func (p *Policy) isHost(addr netip.Addr) (bool, error) {
	interfaces := p.interfaces
	if interfaces == nil {
		interfaces = net.InterfaceAddrs
	}
	addrs, err := interfaces()
	if err != nil {
		return false, fmt.Errorf("read the addresses of the network interfaces, which are refused: %w", err)
	}
	return slices.ContainsFunc(addrs, func(each net.Addr) bool {
		network, ok := each.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(network.IP)
		return ok && own.Unmap() == addr
	}), nil
}

// DialContext connects to address if the policy allows the address that it resolves to. It fits http.Transport and
// gitrepo.Remote.
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
