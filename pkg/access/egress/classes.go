// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import "net/netip"

// The words that --allow-destinations accepts.
const (
	// Loopback allows the addresses of this host that no other host can reach.
	Loopback = "loopback"
	// LinkLocal allows the addresses of the host's own link and those of the cloud's metadata.
	LinkLocal = "link-local"
	// Host allows the addresses of the host's network interfaces.
	Host = "host"
)

// Words returns the words of --allow-destinations. Each allows the classes with that word.
func Words() []string { return []string{Loopback, LinkLocal, Host} }

// Class is a set of addresses that are rejected unless --allow-destinations allows them.
type Class struct {
	// Name is the name in errors.
	Name string
	// Word is the word of --allow-destinations that allows the class. Without one, only addresses and CIDRs allow its
	// addresses.
	Word string
	// Ranges are the addresses. A class that depends on the server's environment has none.
	Ranges []Range
	// Reason describes the addresses of a class that has no ranges.
	Reason string
}

// Range is a part of a class.
type Range struct {
	Prefix netip.Prefix
	// Reason describes the addresses and cites the source.
	Reason string
}

func (c Class) contains(addr netip.Addr) bool {
	for _, each := range c.Ranges {
		if each.Prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// The classes, in the order in which an address is matched.
var (
	loopback = Class{Name: "loopback", Word: Loopback, Ranges: []Range{
		cidr("127.0.0.0/8", "this host (RFC 1122)"),
		cidr("::1/128", "this host (RFC 4291)"),
	}}
	linkLocal = Class{Name: "link-local", Word: LinkLocal, Ranges: []Range{
		cidr("169.254.0.0/16", "the link (RFC 3927), where most clouds serve metadata and credentials: "+
			"169.254.169.254, 169.254.170.2, 169.254.170.23"),
		cidr("fe80::/10", "the link (RFC 4291)"),
	}}
	metadata = Class{Name: "cloud metadata", Word: LinkLocal, Ranges: []Range{
		cidr("100.100.100.200/32", "Alibaba Cloud"),
		cidr("fd00:100::100:200/128", "Alibaba Cloud over IPv6"),
		cidr("192.0.0.192/32", "Oracle Cloud Classic"),
		cidr("fd00:c1::a9fe:a9fe/128", "Oracle Cloud over IPv6"),
		cidr("168.63.129.16/32", "Azure: the wire server"),
		cidr("fd00:ec2::/32", "AWS over IPv6: instance metadata at fd00:ec2::254, EKS Pod Identity at fd00:ec2::23"),
		cidr("fd20:ce::254/128", "Google Cloud over IPv6"),
		cidr("fd00:42::42/128", "Scaleway over IPv6"),
		cidr("fd00:a9fe:a9fe::1/128", "Akamai (Linode) over IPv6"),
	}}
	notUnicast = Class{Name: "not a unicast address", Ranges: []Range{
		cidr("0.0.0.0/8", "this network (RFC 791); 0.0.0.0 is this host"),
		cidr("::/128", "unspecified (RFC 4291): this host"),
		cidr("224.0.0.0/4", "multicast (RFC 5771)"),
		cidr("ff00::/8", "multicast (RFC 4291)"),
		cidr("240.0.0.0/4", "reserved (RFC 1112), with 255.255.255.255, the broadcast (RFC 919)"),
		cidr("fec0::/10", "site-local, given up (RFC 3879)"),
	}}
	apiServer = Class{Name: "the API server", Reason: "the address by which the server reaches kube-apiserver, when that is not a name"}
	host      = Class{Name: "the host", Word: Host, Reason: "the addresses of the network interfaces, read for each connection: " +
		"those of the Pod, or those of the node with `hostNetwork`"}
)

// Classes returns all classes.
func Classes() []Class { return []Class{loopback, linkLocal, metadata, notUnicast, apiServer, host} }

func cidr(prefix, reason string) Range {
	return Range{Prefix: netip.MustParsePrefix(prefix), Reason: reason}
}
