// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"net/netip"
)

// Form is a form of IPv6 addresses that hold an IPv4 address, to which a router, a translator or the far end of a tunnel passes on
// what is sent to them.
type Form struct {
	// Name is what the form is called, and where it is written.
	Name string
	// Prefix is what such addresses begin with.
	Prefix netip.Prefix
	// Where says in words where the IPv4 address is.
	Where string

	// identifier is what the second half of such an address begins with, apart from its bit for universal identifiers. It may be empty.
	identifier []byte
	places     []place
}

// place is where an address holds another one.
type place struct {
	bytes [4]int
	// inverted says that each bit is.
	inverted bool
	// guessed says that the address may hold none here. What is no address of a host means that it does not.
	guessed bool
}

// Forms returns all forms that can be known by looking at an address.
func Forms() []Form {
	last := place{bytes: [4]int{12, 13, 14, 15}}
	return []Form{
		{Name: "IPv4-mapped (RFC 4291)", Prefix: netip.MustParsePrefix("::ffff:0:0/96"), Where: "the last four bytes", places: []place{last}},
		{Name: "IPv4-compatible (RFC 4291)", Prefix: netip.MustParsePrefix("::/96"), Where: "the last four bytes; not of `::` and `::1`",
			places: []place{last}},
		{Name: "IPv4-translated (RFC 2765)", Prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), Where: "the last four bytes", places: []place{last}},
		{Name: "NAT64, the well-known prefix (RFC 6052)", Prefix: netip.MustParsePrefix("64:ff9b::/96"), Where: "the last four bytes",
			places: []place{last}},
		{Name: "NAT64, the prefix for local use (RFC 8215)", Prefix: netip.MustParsePrefix("64:ff9b:1::/48"),
			Where: "wherever RFC 6052 puts it for prefixes of 48, 56, 64 and 96 bits: all of them count",
			places: []place{
				{bytes: last.bytes, guessed: true},
				{bytes: [4]int{6, 7, 9, 10}, guessed: true},
				{bytes: [4]int{7, 9, 10, 11}, guessed: true},
				{bytes: [4]int{9, 10, 11, 12}, guessed: true},
			}},
		{Name: "6to4 (RFC 3056)", Prefix: netip.MustParsePrefix("2002::/16"), Where: "the four bytes after the prefix",
			places: []place{{bytes: [4]int{2, 3, 4, 5}}}},
		{Name: "Teredo (RFC 4380)", Prefix: netip.MustParsePrefix("2001::/32"),
			Where:  "the server after the prefix, the client in the last four bytes with each bit inverted",
			places: []place{{bytes: [4]int{4, 5, 6, 7}}, {bytes: [4]int{12, 13, 14, 15}, inverted: true}}},
		{Name: "ISATAP (RFC 5214)", Prefix: netip.MustParsePrefix("::/0"), Where: "the last four bytes, after `0:5efe` or `200:5efe`",
			identifier: []byte{0, 0, 0x5e, 0xfe}, places: []place{last}},
	}
}

// embedded returns the IPv4 addresses that an address holds by the form.
func (f Form) embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() || !f.Prefix.Contains(addr) || addr.IsUnspecified() || addr.IsLoopback() {
		return nil
	}
	// universal is the bit of an interface identifier that says whether it is unique in the world.
	const universal = 0x02
	whole := addr.As16()
	identifier := whole
	identifier[8] &^= universal
	if !bytes.HasPrefix(identifier[8:], f.identifier) {
		return nil
	}
	var all []netip.Addr
	for _, place := range f.places {
		var four [4]byte
		for i, at := range place.bytes {
			four[i] = whole[at]
			if place.inverted {
				four[i] = ^four[i]
			}
		}
		if held := netip.AddrFrom4(four); !place.guessed || !notUnicast.contains(held) {
			all = append(all, held)
		}
	}
	return all
}

// reached returns where a connection to an address may arrive: there, and at the addresses that it holds. One that is IPv4-mapped is
// the other one: the kernel connects to that.
func reached(addr netip.Addr) []netip.Addr {
	addr = addr.WithZone("").Unmap()
	all := []netip.Addr{addr}
	for _, form := range Forms() {
		all = append(all, form.embedded(addr)...)
	}
	return all
}
