// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// loopback is the listen address of all parts.
const loopback = "127.0.0.1"

// The ports of clusters are below those that Linux, macOS and the BSDs use for
// outgoing connections, so that none is taken while its server is
// restarted.
const (
	firstPort = 20000
	lastPort  = 32767
)

// portAttempts is the number of ports that are tried.
const portAttempts = 1000

// ports are the ports of a cluster's parts.
type ports struct {
	EtcdClient        int   `json:"etcdClient"`
	EtcdPeer          int   `json:"etcdPeer"`
	APIServer         int   `json:"apiServer"`
	ControllerManager int   `json:"controllerManager"`
	Scheduler         int   `json:"scheduler"`
	GitHTTP           int   `json:"gitHTTP"`
	GitSSH            int   `json:"gitSSH"`
	Receiver          int   `json:"receiver"`
	Server            int   `json:"server"`
	Replicas          []int `json:"replicas"`
}

// choosePorts finds a free port for every part. Server is the port that clients use:
// the only replica's, or the balancer's.
func choosePorts(ctx context.Context, replicas int) (ports, error) {
	var chosen ports
	targets := []*int{
		&chosen.EtcdClient, &chosen.EtcdPeer, &chosen.APIServer, &chosen.ControllerManager, &chosen.Scheduler,
		&chosen.GitHTTP, &chosen.GitSSH, &chosen.Receiver, &chosen.Server,
	}
	chosen.Replicas = make([]int, replicas)
	for index := range chosen.Replicas {
		targets = append(targets, &chosen.Replicas[index])
	}
	// All are held until the last is found, so that they are distinct.
	var held []net.Listener
	var failure error
	for _, target := range targets {
		listener, err := listenAnywhere(ctx)
		if err != nil {
			failure = err
			break
		}
		held = append(held, listener)
		*target = listener.Addr().(*net.TCPAddr).Port
	}
	for _, listener := range held {
		failure = errors.Join(failure, listener.Close())
	}
	if replicas == 1 {
		chosen.Replicas[0] = chosen.Server
	}
	return chosen, failure
}

// listenAnywhere listens on a free port.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	var failure error
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		listener, err := config.Listen(ctx, "tcp", address(port))
		if err == nil {
			return listener, nil
		}
		failure = err
	}
	return nil, fmt.Errorf("failed to find a free port: %w", failure)
}

// address returns the loopback address of a port.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
