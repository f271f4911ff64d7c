// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// network is where addresses mean something: the machine, or a Pod's own network.
type network interface {
	// do calls f where that network is the one that sockets are made in and processes inherit.
	do(f func() error) error
}

// machine is the network of this process.
type machine struct{}

func (machine) do(f func() error) error { return f() }

// podNetwork is a network that has nothing but loopback. It lives on a thread of its own: the kernel knows a network by
// its threads, and processes that are started end when the thread ends that started them.
type podNetwork struct {
	calls chan func()
	gone  chan struct{}
}

// newPodNetwork makes a network in which the addresses lead to itself, beside those of loopback.
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

// makeNetwork leaves the machine's network.
func makeNetwork(addresses []netip.Addr) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network: %w", err)
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a socket for the network's settings: %w", err)
	}
	err = raiseLoopback(socket)
	for index, address := range addresses {
		err = errors.Join(err, addAddress(socket, index, address))
	}
	return errors.Join(err, unix.Close(socket))
}

func raiseLoopback(socket int) error {
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("raising the loopback device: %w", err)
	}
	return nil
}

// addAddress gives loopback one more address. The kernel tells those of one device apart by a label.
func addAddress(socket, index int, address netip.Addr) error {
	request, err := unix.NewIfreq(fmt.Sprintf("lo:%d", index))
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(address.AsSlice()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFADDR, request); err != nil {
		return fmt.Errorf("adding the address %s: %w", address, err)
	}
	return nil
}

// serve runs calls on its thread.
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
		return errors.New("the network is gone")
	}
}

// close ends the network, and the processes that were started in it.
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
