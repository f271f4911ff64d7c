// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses the server may connect to on behalf of a user.
//
// Repository and sink URLs come from people who may write a Slipstream object but who
// must not be able to use the server's place in the network: every outgoing connection
// that a user's URL causes is made by one dialer that looks at the address it is about to
// connect to, after name resolution, so that a name cannot be made to point elsewhere in
// between. Classes and Forms are all that is refused; the documentation is made from them.
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

// Policy says which addresses are refused: those of all classes, unless they are explicitly allowed. The zero value allows none of
// them, knows no API server, and allows every other address.
type Policy struct {
	words   []string
	allowed []netip.Prefix
	// apiServers are the addresses by which the server reaches kube-apiserver.
	apiServers []netip.Addr
	// interfaces returns the addresses of the host's network interfaces, with their networks. It is net.InterfaceAddrs when it is nil.
	interfaces func() ([]net.Addr, error)
}

// NewPolicy parses what --allow-destinations was given: one of the words, an IP address or a CIDR. apiServers are refused
// unless an address or a CIDR in allow holds them.
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

// parsePrefix reads an address or a CIDR. One that is IPv4-mapped means the IPv4 addresses.
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

// RefusedError says that an address may not be connected to.
type RefusedError struct {
	// Address is what is refused.
	Address string
	// Via is the address that was to be connected to when it is another one, which holds Address.
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

// Check returns a *RefusedError if addr may not be connected to. All addresses to which a connection may lead have to be
// allowed, each by itself: who allows the addresses of a translator has not allowed what is behind it.
func (p *Policy) Check(addr netip.Addr) error {
	if !addr.IsValid() {
		return errors.New("there is no address to connect to")
	}
	all := reached(addr)
	for _, each := range all {
		class, err := p.refuses(each)
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

// refuses returns the class because of which an address is refused, or nothing.
func (p *Policy) refuses(addr netip.Addr) (string, error) {
	if slices.ContainsFunc(p.allowed, func(prefix netip.Prefix) bool { return prefix.Contains(addr) }) {
		return "", nil
	}
	for _, class := range Classes() {
		holds, err := p.holds(class, addr)
		switch {
		case err != nil:
			return "", err
		case holds && class.Word != "" && slices.Contains(p.words, class.Word):
			// The host has these addresses, and kube-apiserver may have them.
			if class.Name == loopback.Name {
				return "", nil
			}
		case holds:
			return class.Name, nil
		}
	}
	return "", nil
}

// holds says whether an address is of a class here.
func (p *Policy) holds(class Class, addr netip.Addr) (bool, error) {
	switch class.Name {
	case apiServer.Name:
		return slices.Contains(p.apiServers, addr), nil
	case host.Name:
		return p.isHost(addr)
	}
	return class.contains(addr), nil
}

// isHost says whether a network interface has an address now. It can have another one in a minute, so nothing is remembered.
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
