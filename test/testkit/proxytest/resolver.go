// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxytest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// maxMessage is the size of DNS messages over UDP.
const maxMessage = 512

// NewResolver starts a DNS server and returns a resolver that uses it. lookup returns the addresses of a name, which has no dot
// at its end; a name without addresses does not exist.
func NewResolver(t *testing.T, lookup func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, maxMessage)
		for {
			size, client, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if message, err := resolve(buffer[:size], lookup); err == nil {
				_, _ = server.WriteTo(message, client)
			}
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// resolve returns the response to a query.
func resolve(query []byte, lookup func(string) []netip.Addr) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	message.Header = dnsmessage.Header{ID: message.ID, Response: true, Authoritative: true, RecursionAvailable: true}
	message.Additionals = nil
	for _, question := range message.Questions {
		addrs := lookup(strings.TrimSuffix(question.Name.String(), "."))
		if len(addrs) == 0 {
			message.RCode = dnsmessage.RCodeNameError
		}
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class}
		for _, addr := range addrs {
			switch {
			case addr.Is4() && question.Type == dnsmessage.TypeA:
				message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
			case addr.Is6() && question.Type == dnsmessage.TypeAAAA:
				message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
			}
		}
	}
	return message.Pack()
}
