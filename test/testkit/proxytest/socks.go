// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxytest

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
)

// The numbers of RFC 1928 and RFC 1929.
const (
	version         = 5
	authVersion     = 1
	methodNone      = 0
	methodPassword  = 2
	methodRefused   = 0xff
	commandConnect  = 1
	addressIPv4     = 1
	addressName     = 3
	addressIPv6     = 4
	replyOK         = 0
	replyFailed     = 1
	replyNoCommand  = 7
	replyNoAddress  = 8
	statusForbidden = 1
)

// serveSOCKS serves CONNECT of SOCKS5.
func (p *Proxy) serveSOCKS(client net.Conn) {
	if !p.authenticate(client) {
		return
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(client, head); err != nil || head[0] != version {
		return
	}
	if head[1] != commandConnect {
		socksReply(client, replyNoCommand)
		return
	}
	address, ok := readAddress(client, head[3])
	p.record(address)
	switch {
	case !ok:
		socksReply(client, replyNoAddress)
		return
	case p.options.Reply != 0:
		socksReply(client, p.options.Reply)
		return
	}
	target, err := p.connect(address)
	if err != nil {
		socksReply(client, replyFailed)
		return
	}
	socksReply(client, replyOK)
	p.forward(client, client, target)
}

// authenticate chooses a method and checks the credentials.
func (p *Proxy) authenticate(client net.Conn) bool {
	head := make([]byte, 2)
	if _, err := io.ReadFull(client, head); err != nil || head[0] != version {
		return false
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(client, methods); err != nil {
		return false
	}
	method := byte(methodNone)
	if p.options.Username != "" {
		method = methodPassword
	}
	for _, offered := range methods {
		if offered == method {
			_, _ = client.Write([]byte{version, method})
			return method == methodNone || p.checkPassword(client)
		}
	}
	_, _ = client.Write([]byte{version, methodRefused})
	return false
}

func (p *Proxy) checkPassword(client net.Conn) bool {
	if head, ok := readBytes(client, 1); !ok || head[0] != authVersion {
		return false
	}
	username, ok := readString(client)
	if !ok {
		return false
	}
	password, ok := readString(client)
	if !ok {
		return false
	}
	allowed := username == p.options.Username && password == p.options.Password
	status := byte(0)
	if !allowed {
		status = statusForbidden
	}
	_, _ = client.Write([]byte{authVersion, status})
	return allowed
}

func readAddress(client net.Conn, kind byte) (string, bool) {
	var host string
	switch kind {
	case addressIPv4, addressIPv6:
		length := net.IPv4len
		if kind == addressIPv6 {
			length = net.IPv6len
		}
		address, ok := readBytes(client, length)
		if !ok {
			return "", false
		}
		host = net.IP(address).String()
	case addressName:
		name, ok := readString(client)
		if !ok {
			return "", false
		}
		host = name
	default:
		return "", false
	}
	port, ok := readBytes(client, 2)
	if !ok {
		return "", false
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), true
}

func readBytes(client net.Conn, length int) ([]byte, bool) {
	data := make([]byte, length)
	_, err := io.ReadFull(client, data)
	return data, err == nil
}

// readString reads a length of one byte, and as many bytes.
func readString(client net.Conn) (string, bool) {
	length, ok := readBytes(client, 1)
	if !ok {
		return "", false
	}
	text, ok := readBytes(client, int(length[0]))
	return string(text), ok
}

func socksReply(client net.Conn, code byte) {
	_, _ = client.Write([]byte{version, code, 0, addressIPv4, 0, 0, 0, 0, 0, 0})
}
