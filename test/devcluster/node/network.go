// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// network is a network namespace: the machine's, or a Pod's own.
type network interface {
	// do calls f on a thread in the network, so that sockets are created in it and processes inherit it.
	do(f func() error) error
}

// machine is the network of this process.
type machine struct{}

func (machine) do(f func() error) error { return f() }

// podNetwork is a network with only a loopback device. It has a thread of its own: the kernel assigns networks to
// threads, and child processes end with the thread that started them.
type podNetwork struct {
	calls chan func()
	gone  chan struct{}
}

// newPodNetwork creates a network in which the addresses are local, in addition to those of loopback. No interface has them.
func newPodNetwork(addresses ...netip.Addr) (*podNetwork, error) {
	n := &podNetwork{calls: make(chan func()), gone: make(chan struct{})}
	made := make(chan error)
	go func() {
		// The thread is never unlocked, so it ends with the goroutine, and the network with it.
		runtime.LockOSThread()
		err := makeNetwork(addresses)
		made <- err
		if err == nil {
			n.serve()
		}
	}()
	return n, <-made
}

// makeNetwork moves the thread to a new network.
func makeNetwork(addresses []netip.Addr) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("failed to create a network: %w", err)
	}
	if err := raiseLoopback(); err != nil {
		return err
	}
	for _, address := range addresses {
		if err := addRoute(address); err != nil {
			return fmt.Errorf("failed to add a route to %s: %w", address, err)
		}
	}
	return nil
}

func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("failed to create a socket for the network's settings: %w", err)
	}
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	if err := errors.Join(err, unix.Close(socket)); err != nil {
		return fmt.Errorf("failed to bring up the loopback device: %w", err)
	}
	return nil
}

// addRoute makes an address local. No interface gets the address: for the processes in the Pod it belongs to
// another host.
func addRoute(address netip.Addr) error {
	const (
		attributeSize = 8
		size          = unix.SizeofNlMsghdr + unix.SizeofRtMsg + 2*attributeSize
		// loopbackIndex is that of the loopback device in every network.
		loopbackIndex = 1
	)
	order := binary.NativeEndian
	// struct nlmsghdr
	message := order.AppendUint32(nil, size)
	message = order.AppendUint16(message, unix.RTM_NEWROUTE)
	message = order.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	message = append(message, make([]byte, 8)...)
	// struct rtmsg
	message = append(message, unix.AF_INET, byte(address.BitLen()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST,
		unix.RTN_LOCAL)
	message = order.AppendUint32(message, 0)
	// Attributes
	message = order.AppendUint16(order.AppendUint16(message, attributeSize), unix.RTA_DST)
	message = append(message, address.AsSlice()...)
	message = order.AppendUint16(order.AppendUint16(message, attributeSize), unix.RTA_OIF)
	message = order.AppendUint32(message, loopbackIndex)
	return netlinkRequest(message)
}

// netlinkRequest sends a request to the kernel, and returns the kernel's error.
func netlinkRequest(request []byte) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.Sendto(socket, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	response := make([]byte, unix.Getpagesize())
	read, _, err := unix.Recvfrom(socket, response, 0)
	switch {
	case err != nil:
		return err
	case read < unix.SizeofNlMsghdr+unix.SizeofNlMsgerr:
		return errors.New("the kernel's response is too short")
	}
	// struct nlmsgerr, which has 0 for success
	if code := int32(binary.NativeEndian.Uint32(response[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// serve runs the calls on its thread.
func (n *podNetwork) serve() {
	for {
		select {
		case call := <-n.calls:
			call()
		case <-n.gone:
			return
		}
	}
}

func (n *podNetwork) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case n.calls <- func() { result <- f() }:
		return <-result
	case <-n.gone:
		return errors.New("the network is closed")
	}
}

// close removes the network, and kills the processes that were started in it.
func (n *podNetwork) close() { close(n.gone) }

// listen listens in a network.
func listen(ctx context.Context, in network, address string) (listener net.Listener, err error) {
	err = in.do(func() error {
		var config net.ListenConfig
		listener, err = config.Listen(ctx, "tcp", address)
		return err
	})
	return listener, err
}

// dial connects to an address in a network.
func dial(ctx context.Context, in network, address string) (connection net.Conn, err error) {
	err = in.do(func() error {
		var dialer net.Dialer
		connection, err = dialer.DialContext(ctx, "tcp", address)
		return err
	})
	return connection, err
}

// start starts a process in a network.
func start(in network, command *exec.Cmd) error {
	return in.do(command.Start)
}
