// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
)

// loopback is the listen address of all parts.
const loopback = "127.0.0.1"

// The ports of clusters are below those that Linux, macOS and the BSDs use for
// outgoing connections, so that none is taken while its server is restarted.
// They are divided into blocks. A cluster locks the block of its ports, so that no
// other cluster takes one that is free at the moment.
const (
	firstPort = 20000
	lastPort  = 32767
	blockSize = 32
)

// blockAttempts is the number of blocks that are tried.
const blockAttempts = 200

// ports are the ports of a cluster's parts.
type ports struct {
	EtcdClient        int   `json:"etcdClient"`
	EtcdPeer          int   `json:"etcdPeer"`
	APIServer         int   `json:"apiServer"`
	SecondAPIServer   int   `json:"secondAPIServer"`
	ControllerManager int   `json:"controllerManager"`
	Scheduler         int   `json:"scheduler"`
	GitHTTP           int   `json:"gitHTTP"`
	GitSSH            int   `json:"gitSSH"`
	Receiver          int   `json:"receiver"`
	Server            int   `json:"server"`
	Replicas          []int `json:"replicas"`
}

// choosePorts finds a free port for every part, in a block that is locked until the
// lock is released by this process and all that inherit it. Server is the port that
// clients use: the only replica's, or the balancer's.
func choosePorts(ctx context.Context, replicas int) (ports, *filelock.Lock, error) {
	var failure error
	for range blockAttempts {
		block := rand.IntN((lastPort - firstPort + 1) / blockSize)
		lock, err := filelock.Try(filepath.Join(os.TempDir(), fmt.Sprintf("slipstream-devcluster-ports-%d.lock", block)))
		if err != nil {
			failure = err
			continue
		}
		chosen := ports{Replicas: make([]int, replicas)}
		targets := chosen.fixed()
		for index := range chosen.Replicas {
			targets = append(targets, &chosen.Replicas[index])
		}
		if failure = assign(ctx, firstPort+block*blockSize, nil, targets); failure == nil {
			chosen.shareServer()
			return chosen, lock, nil
		}
		failure = errors.Join(failure, lock.Release())
	}
	return ports{}, nil, fmt.Errorf("failed to find free ports: %w", failure)
}

// chooseReplicas replaces the ports of the replicas, with free ones of the same block.
func (p *ports) chooseReplicas(ctx context.Context, replicas int) error {
	taken := sets.New[int]()
	for _, port := range p.fixed() {
		taken.Insert(*port)
	}
	chosen := make([]int, replicas)
	targets := make([]*int, replicas)
	for index := range chosen {
		targets[index] = &chosen[index]
	}
	first := p.EtcdClient - (p.EtcdClient-firstPort)%blockSize
	if err := assign(ctx, first, taken, targets); err != nil {
		return err
	}
	p.Replicas = chosen
	p.shareServer()
	return nil
}

// fixed are the ports other than those of the replicas.
func (p *ports) fixed() []*int {
	return []*int{
		&p.EtcdClient, &p.EtcdPeer, &p.APIServer, &p.SecondAPIServer, &p.ControllerManager, &p.Scheduler, &p.GitHTTP, &p.GitSSH,
		&p.Receiver, &p.Server,
	}
}

// shareServer makes the only replica use the port of the clients, which otherwise the balancer has.
func (p *ports) shareServer() {
	if len(p.Replicas) == 1 {
		p.Replicas[0] = p.Server
	}
}

// assign sets the targets to different free ports of the block that begins with first, except those that are taken.
func assign(ctx context.Context, first int, taken sets.Set[int], targets []*int) error {
	failure := errors.New("the block is too small")
	for port := first; port < first+blockSize && len(targets) > 0; port++ {
		if taken.Has(port) {
			continue
		}
		if err := checkFree(ctx, port); err != nil {
			failure = err
			continue
		}
		*targets[0], targets = port, targets[1:]
	}
	if len(targets) > 0 {
		return fmt.Errorf("%d ports are missing in the block from %d: %w", len(targets), first, failure)
	}
	return nil
}

// checkFree returns an error if another program listens on a port.
func checkFree(ctx context.Context, port int) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// address returns the loopback address of a port.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
