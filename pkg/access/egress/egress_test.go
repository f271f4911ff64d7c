// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// testHost has the network interfaces of a host with an address of each kind.
func testHost() ([]net.Addr, error) {
	var all []net.Addr
	for _, address := range []string{"127.0.0.1/8", "::1/128", "10.1.0.5/24", "2001:db8::5/64", "fe80::5/64"} {
		ip, network, err := net.ParseCIDR(address)
		if err != nil {
			return nil, err
		}
		all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	return all, nil
}

// refusal is what a test expects of an address: the class, empty when it is allowed, and the address that is of that class when it is
// another one.
type refusal struct {
	allow   []string
	address string
	class   string
	reached string
}

func (want refusal) check(t *testing.T) {
	t.Helper()
	policy, err := NewPolicy(want.allow, netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("127.0.0.9"))
	if err != nil {
		t.Fatal(err)
	}
	policy.interfaces = testHost
	err = policy.Check(netip.MustParseAddr(want.address))
	var got *RefusedError
	switch {
	case want.class == "" && err != nil:
		t.Errorf("with %v: %v", want.allow, err)
	case want.class == "":
	case !errors.As(err, &got):
		t.Errorf("with %v, %s is not refused: %v", want.allow, want.address, err)
	case got.Class != want.class || want.reached != "" && (got.Address != want.reached || got.Via != want.address):
		t.Errorf("with %v, %s: %v, want %s and class %q", want.allow, want.address, err, want.reached, want.class)
	}
}

func TestCheck(t *testing.T) {
	for name, want := range map[string]refusal{
		"public":                             {address: "203.0.113.7"},
		"private":                            {address: "10.1.2.3"},
		"private v6":                         {address: "fd00::1"},
		"shared address space":               {address: "100.64.0.1"},
		"loopback":                           {address: "127.0.0.1", class: "loopback"},
		"loopback v6":                        {address: "::1", class: "loopback"},
		"loopback mapped into v6":            {address: "::ffff:127.0.0.1", class: "loopback"},
		"loopback allowed":                   {allow: []string{Loopback}, address: "127.0.0.1"},
		"one loopback address allowed":       {allow: []string{"127.0.0.2"}, address: "127.0.0.2"},
		"another loopback address allowed":   {allow: []string{"127.0.0.2"}, address: "127.0.0.1", class: "loopback"},
		"instance metadata":                  {address: "169.254.169.254", class: "link-local"},
		"instance metadata not by loopback":  {allow: []string{Loopback, Host}, address: "169.254.169.254", class: "link-local"},
		"container credentials":              {address: "169.254.170.23", class: "link-local"},
		"link-local allowed":                 {allow: []string{LinkLocal}, address: "fe80::1"},
		"link-local of an interface":         {address: "fe80::1%eth0", class: "link-local"},
		"link-local of an interface allowed": {allow: []string{"fe80::/64"}, address: "fe80::1%eth0"},
		"Alibaba Cloud":                      {address: "100.100.100.200", class: "cloud metadata"},
		"Alibaba Cloud over v6":              {address: "fd00:100::100:200", class: "cloud metadata"},
		"Oracle Cloud":                       {address: "192.0.0.192", class: "cloud metadata"},
		"Oracle Cloud over v6":               {address: "fd00:c1::a9fe:a9fe", class: "cloud metadata"},
		"Azure":                              {address: "168.63.129.16", class: "cloud metadata"},
		"EC2 over v6":                        {address: "fd00:ec2::254", class: "cloud metadata"},
		"EKS Pod Identity over v6":           {address: "fd00:ec2::23", class: "cloud metadata"},
		"Compute Engine over v6":             {address: "fd20:ce::254", class: "cloud metadata"},
		"Scaleway over v6":                   {address: "fd00:42::42", class: "cloud metadata"},
		"Akamai over v6":                     {address: "fd00:a9fe:a9fe::1", class: "cloud metadata"},
		"metadata allowed":                   {allow: []string{LinkLocal}, address: "fd20:ce::254"},
		"one metadata address allowed":       {allow: []string{"168.63.129.16"}, address: "168.63.129.16"},
		"metadata not by the host":           {allow: []string{Loopback, Host}, address: "168.63.129.16", class: "cloud metadata"},
		"API server":                         {address: "10.96.0.1", class: "the API server"},
		"API server not by words":            {allow: Words(), address: "10.96.0.1", class: "the API server"},
		"API server allowed by CIDR":         {allow: []string{"10.96.0.0/12"}, address: "10.96.0.1"},
		"API server on loopback":             {address: "127.0.0.9", class: "loopback"},
		"API server on loopback allowed":     {allow: []string{Loopback}, address: "127.0.0.9"},
		"host":                               {address: "10.1.0.5", class: "the host"},
		"host over v6":                       {address: "2001:db8::5", class: "the host"},
		"host mapped into v6":                {address: "::ffff:10.1.0.5", class: "the host"},
		"host not by loopback":               {allow: []string{Loopback}, address: "10.1.0.5", class: "the host"},
		"host allowed":                       {allow: []string{Host}, address: "10.1.0.5"},
		"host allowed by CIDR":               {allow: []string{"10.1.0.0/16"}, address: "10.1.0.5"},
		"loopback not by the host":           {allow: []string{Host}, address: "127.0.0.1", class: "loopback"},
		"neighbour of the host":              {address: "10.1.0.6"},
		"host on its link":                   {allow: []string{LinkLocal}, address: "fe80::5%eth0", class: "the host"},
		"unspecified":                        {allow: Words(), address: "0.0.0.0", class: "not a unicast address"},
		"unspecified v6":                     {allow: Words(), address: "::", class: "not a unicast address"},
		"this network":                       {address: "0.1.2.3", class: "not a unicast address"},
		"multicast":                          {address: "239.1.1.1", class: "not a unicast address"},
		"multicast on the link":              {allow: Words(), address: "224.0.0.1", class: "not a unicast address"},
		"multicast v6":                       {address: "ff02::1", class: "not a unicast address"},
		"multicast v6 of an interface":       {allow: Words(), address: "ff02::1%eth0", class: "not a unicast address"},
		"reserved":                           {address: "240.0.0.1", class: "not a unicast address"},
		"broadcast":                          {allow: Words(), address: "255.255.255.255", class: "not a unicast address"},
		"site-local":                         {address: "fec0::1", class: "not a unicast address"},
		"all of IPv4 named as mapped":        {allow: []string{"::ffff:0:0/96"}, address: "127.0.0.1"},
		"an address named as mapped":         {allow: []string{"::ffff:127.0.0.1"}, address: "127.0.0.1"},
		"all of IPv6 does not allow IPv4":    {allow: []string{"::/0"}, address: "127.0.0.1", class: "loopback"},
		"all of IPv6 does not allow mapped":  {allow: []string{"::/0"}, address: "::ffff:169.254.169.254", class: "link-local"},
		"all of IPv4 does not allow IPv6":    {allow: []string{"0.0.0.0/0"}, address: "fd00:ec2::254", class: "cloud metadata"},
	} {
		t.Run(name, func(t *testing.T) { want.check(t) })
	}
}

// An address that holds another one leads there, too: both have to be allowed.
func TestCheckOfEmbeddedAddresses(t *testing.T) {
	for name, forms := range map[string]struct{ metadata, loopback, host, apiServer, private, public string }{
		"IPv4-compatible": {"::169.254.169.254", "::127.0.0.1", "::10.1.0.5", "::10.96.0.1", "::10.1.2.3", "::203.0.113.7"},
		"IPv4-translated": {
			"::ffff:0:a9fe:a9fe", "::ffff:0:7f00:1", "::ffff:0:a01:5", "::ffff:0:a60:1", "::ffff:0:a01:203", "::ffff:0:cb00:7107",
		},
		"NAT64": {
			"64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::a01:5", "64:ff9b::a60:1", "64:ff9b::a01:203", "64:ff9b::cb00:7107",
		},
		"NAT64 for local use, 48 bits": {
			"64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:7f00:0:100::", "64:ff9b:1:a01:0:500::", "64:ff9b:1:a60:0:100::",
			"64:ff9b:1:a01:2:300::", "64:ff9b:1:cb00:71:700::",
		},
		"NAT64 for local use, 48 bits and a suffix": {
			"64:ff9b:1:a9fe:a9:fe00::7", "64:ff9b:1:7f00:0:100:0:7", "64:ff9b:1:a01:0:500:0:7", "64:ff9b:1:a60:0:100:0:7",
			"64:ff9b:1:a01:2:300:0:7", "64:ff9b:1:cb00:71:700:0:7",
		},
		"NAT64 for local use, 56 bits": {
			"64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:7f:0:1::", "64:ff9b:1:a:1:5::", "64:ff9b:1:a:60:1::", "64:ff9b:1:a:1:203::",
			"64:ff9b:1:cb:0:7107::",
		},
		"NAT64 for local use, 64 bits": {
			"64:ff9b:1:0:a9:fea9:fe00:0", "64:ff9b:1:0:7f:0:100:0", "64:ff9b:1:0:a:100:500:0", "64:ff9b:1:0:a:6000:100:0",
			"64:ff9b:1:0:a:102:300:0", "64:ff9b:1:0:cb:71:700:0",
		},
		"NAT64 for local use, 96 bits": {
			"64:ff9b:1::a9fe:a9fe", "64:ff9b:1::7f00:1", "64:ff9b:1::a01:5", "64:ff9b:1::a60:1", "64:ff9b:1::a01:203", "64:ff9b:1::cb00:7107",
		},
		"6to4": {"2002:a9fe:a9fe::1", "2002:7f00:1::1", "2002:a01:5::1", "2002:a60:1::1", "2002:a01:203::1", "2002:cb00:7107::1"},
		"Teredo, the server": {
			"2001:0:a9fe:a9fe::34ff:8ef8", "2001:0:7f00:1::34ff:8ef8", "2001:0:a01:5::34ff:8ef8", "2001:0:a60:1::34ff:8ef8",
			"2001:0:a01:203::34ff:8ef8", "2001:0:cb00:7107::34ff:8ef8",
		},
		"Teredo, the client": {
			"2001:0:cb00:7107::5601:5601", "2001:0:cb00:7107::80ff:fffe", "2001:0:cb00:7107::f5fe:fffa", "2001:0:cb00:7107::f59f:fffe",
			"2001:0:cb00:7107::f5fe:fdfc", "2001:0:cb00:7107::34ff:8ef8",
		},
		"ISATAP": {
			"2001:db8::5efe:a9fe:a9fe", "2001:db8::5efe:7f00:1", "2001:db8::5efe:a01:5", "2001:db8::5efe:a60:1", "2001:db8::5efe:a01:203",
			"2001:db8::5efe:cb00:7107",
		},
		"ISATAP, unique": {
			"2001:db8::200:5efe:a9fe:a9fe", "2001:db8::200:5efe:7f00:1", "2001:db8::200:5efe:a01:5", "2001:db8::200:5efe:a60:1",
			"2001:db8::200:5efe:a01:203", "2001:db8::200:5efe:cb00:7107",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for address, want := range map[string]refusal{
				forms.metadata:  {class: "link-local", reached: "169.254.169.254"},
				forms.loopback:  {class: "loopback", reached: "127.0.0.1"},
				forms.host:      {class: "the host", reached: "10.1.0.5"},
				forms.apiServer: {class: "the API server", reached: "10.96.0.1"},
				forms.private:   {},
				forms.public:    {},
			} {
				// As users write it, and as errors show it.
				want.address = netip.MustParseAddr(address).String()
				want.check(t)
				// What leads there is allowed, and what it leads to is not.
				want.allow = []string{"::/0"}
				want.check(t)
				// A translator for local use may find another address there, of the same network.
				refusal{allow: []string{"169.254.0.0/16", "127.0.0.0/8", "10.0.0.0/8"}, address: address}.check(t)
			}
		})
	}
}

// Where the outer address is of a class, too, allowing the embedded one is not enough.
func TestCheckOfAnEmbeddedAddressOnTheLink(t *testing.T) {
	refusal{allow: []string{"169.254.169.254"}, address: "fe80::5efe:a9fe:a9fe", class: "link-local"}.check(t)
	refusal{allow: []string{"fe80::/10"}, address: "fe80::5efe:a9fe:a9fe", class: "link-local", reached: "169.254.169.254"}.check(t)
	refusal{allow: []string{"fe80::/10", "169.254.169.254"}, address: "fe80::5efe:a9fe:a9fe"}.check(t)
}

// The host's addresses are those that it has now.
func TestCheckReadsTheInterfacesEachTime(t *testing.T) {
	policy, address := &Policy{}, netip.MustParseAddr("10.1.0.5")
	policy.interfaces = func() ([]net.Addr, error) { return nil, nil }
	if err := policy.Check(address); err != nil {
		t.Errorf("before the host has it: %v", err)
	}
	policy.interfaces = testHost
	if err := policy.Check(address); err == nil {
		t.Error("not refused when the host has it")
	}
	broken := errors.New("broken")
	policy.interfaces = func() ([]net.Addr, error) { return nil, broken }
	if err := policy.Check(address); !errors.Is(err, broken) {
		t.Errorf("when it is not known whether the host has it: %v", err)
	}
}

// This test's host has addresses, too. They are looked at, not connected to.
func TestCheckOfThisHost(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range addrs {
		prefix, err := netip.ParsePrefix(each.String())
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Policy).Check(prefix.Addr()); err == nil {
			t.Errorf("%s is not refused", prefix.Addr())
		}
	}
}

func TestCheckOfNoAddress(t *testing.T) {
	if err := new(Policy).Check(netip.Addr{}); err == nil {
		t.Error("not refused")
	}
}

func TestRefusedError(t *testing.T) {
	for address, want := range map[string]string{
		"169.254.169.254": "connections to 169.254.169.254 (link-local) are refused; --allow-destinations can allow them",
		"64:ff9b::a9fe:a9fe": "connections to 169.254.169.254 (link-local), where 64:ff9b::a9fe:a9fe leads, are refused; " +
			"--allow-destinations can allow them",
	} {
		if err := new(Policy).Check(netip.MustParseAddr(address)); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNewPolicyNamesWhatIsAllowed(t *testing.T) {
	for _, entry := range []string{"localhost", "fe80::1%eth0", "10.0.0.0/33", ""} {
		_, err := NewPolicy([]string{entry})
		if err == nil || !strings.Contains(err.Error(), `": use loopback, link-local, host, an IP address without a zone, or a CIDR`) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestDialContextLooksAtTheResolvedAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	closed, open := &Policy{}, &Policy{words: []string{Loopback}}

	var refused *RefusedError
	// The last of them is this host as well: the kernel takes it for loopback.
	for _, host := range []string{"localhost", "127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0"} {
		if _, err := closed.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port)); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a RefusedError", host, err)
		}
	}
	conn, err := open.DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if err != nil {
		t.Fatalf("with loopback allowed: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	policy, address := &Policy{}, netip.MustParseAddr("203.0.113.7")
	for b.Loop() {
		if err := policy.Check(address); err != nil {
			b.Fatal(err)
		}
	}
}
