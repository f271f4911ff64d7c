// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"net/netip"
)

// Form is a form of IPv6 addresses with an embedded IPv4 address, to which a router, a translator or a tunnel endpoint
// forwards.
type Form struct {
	// Name is the name of the form and its source.
	Name string
	// Prefix is the prefix of such addresses.
	Prefix netip.Prefix
	// Where describes the position of the IPv4 address.
	Where string

	// identifier is the beginning of the interface identifier, ignoring the bit for universal identifiers. It can be
	// empty.
	identifier []byte
	places     []place
}

// place is the position of an embedded address.
type place struct {
	bytes [4]int
	// inverted is set if each bit is inverted.
	inverted bool
	// guessed is set if the position can hold something else. A value that is no host address is ignored.
	guessed bool
}

// Forms returns the forms that can be recognized by the address alone.
func Forms() []Form {
	last := place{bytes: [4]int{12, 13, 14, 15}}
	return []Form{
		{Name: "IPv4-mapped (RFC 4291)", Prefix: netip.MustParsePrefix("::ffff:0:0/96"), Where: "the last four bytes", places: []place{last}},
		{Name: "IPv4-compatible (RFC 4291)", Prefix: netip.MustParsePrefix("::/96"), Where: "the last four bytes; not of `::` and `::1`",
			places: []place{last}},
		{
			Name: "IPv4-translated (RFC 2765)", Prefix: netip.MustParsePrefix("::ffff:0:0:0/96"),
			Where: "the last four bytes", places: []place{last},
		},
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

// embedded returns the IPv4 addresses that an address embeds in this form.
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

// reached returns the addresses that a connection can lead to: the address itself and the embedded ones. An IPv4-mapped
// address only leads to the IPv4 address, which is what the kernel connects to.
func reached(addr netip.Addr) []netip.Addr {
	addr = addr.WithZone("").Unmap()
	all := []netip.Addr{addr}
	for _, form := range Forms() {
		all = append(all, form.embedded(addr)...)
	}
	return all
}
