// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/test/devcluster/balancer"
)

// proxy forwards connections to the addresses of Services to their Pods, as kube-proxy does.
type proxy struct {
	node     *Node
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	turn     atomic.Uint64

	// mutex guards the forwarders.
	mutex      sync.Mutex
	forwarders map[*forwarder]bool
}

// newProxy follows the Services of the factory.
func newProxy(n *Node, factory informers.SharedInformerFactory) (*proxy, error) {
	services, endpoints := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	p := &proxy{node: n, services: services.Lister(), slices: endpoints.Lister(), forwarders: map[*forwarder]bool{}}
	// Endpoints are looked up for each connection, so that their informer only needs to be started.
	endpoints.Informer()
	if _, err := services.Informer().AddEventHandler(handler(func(any, bool) { p.changed() })); err != nil {
		return nil, fmt.Errorf("failed to watch Services: %w", err)
	}
	return p, nil
}

// changed makes all forwarders check the Services.
func (p *proxy) changed() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for f := range p.forwarders {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// serve forwards in a network until ctx ends, and returns when it listens on all current addresses. fixed maps addresses to the
// machine's addresses.
func (p *proxy) serve(ctx context.Context, in network, fixed map[string]string) error {
	f := &forwarder{proxy: p, network: in, changed: make(chan struct{}, 1), listeners: map[string]context.CancelFunc{}}
	for address, target := range fixed {
		toMachine := func(ctx context.Context) (net.Conn, error) { return dial(ctx, machine{}, target) }
		if err := f.listen(ctx, address, toMachine); err != nil {
			return err
		}
	}
	p.mutex.Lock()
	p.forwarders[f] = true
	p.mutex.Unlock()
	if err := f.sync(ctx); err != nil {
		return err
	}
	p.node.running.Go(func() { f.run(ctx) })
	return nil
}

// addresses returns the addresses of Services, each with a function that connects to an endpoint.
func (p *proxy) addresses() (map[string]func(context.Context) (net.Conn, error), error) {
	services, err := p.services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("failed to list Services: %w", err)
	}
	addresses := map[string]func(context.Context) (net.Conn, error){}
	for _, service := range services {
		if net.ParseIP(service.Spec.ClusterIP) == nil {
			continue
		}
		for _, port := range service.Spec.Ports {
			address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))
			addresses[address] = func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, service, port.Name) }
		}
	}
	return addresses, nil
}

// dial connects to the next endpoint of a Service.
func (p *proxy) dial(ctx context.Context, service *corev1.Service, port string) (net.Conn, error) {
	endpoints, err := p.endpoints(service, port)
	if err != nil {
		return nil, err
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("failed to find an endpoint of Service %s: none is ready", service.Name)
	}
	chosen := endpoints[p.turn.Add(1)%uint64(len(endpoints))]
	to, err := p.node.networkOf(chosen.address)
	if err != nil {
		return nil, err
	}
	return dial(ctx, to, net.JoinHostPort(loopback, strconv.Itoa(int(chosen.port))))
}

// endpoint is the address of a Pod.
type endpoint struct {
	address string
	port    int32
}

// endpoints returns the ready endpoints, or the terminating ones that still serve if no other exists.
func (p *proxy) endpoints(service *corev1.Service, port string) (ready []endpoint, err error) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	slices, err := p.slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("failed to list endpoints: %w", err)
	}
	var ending []endpoint
	for _, slice := range slices {
		for _, each := range slice.Endpoints {
			found := endpoint{address: each.Addresses[0], port: portNamed(slice, port)}
			switch conditions := each.Conditions; {
			case conditions.Ready != nil && *conditions.Ready:
				ready = append(ready, found)
			case conditions.Serving != nil && *conditions.Serving:
				ending = append(ending, found)
			}
		}
	}
	if len(ready) == 0 {
		return ending, nil
	}
	return ready, nil
}

func portNamed(slice *discoveryv1.EndpointSlice, name string) int32 {
	for _, port := range slice.Ports {
		if port.Port != nil && (port.Name == nil && name == "" || port.Name != nil && *port.Name == name) {
			return *port.Port
		}
	}
	return 0
}

// forwarder listens at the addresses of Services in one network.
type forwarder struct {
	proxy   *proxy
	network network
	changed chan struct{}
	// listeners are the functions that stop listening on an address of a Service.
	listeners map[string]context.CancelFunc
}

// run syncs on changes of Services until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	defer func() {
		f.proxy.mutex.Lock()
		defer f.proxy.mutex.Unlock()
		delete(f.proxy.forwarders, f)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			if err := f.sync(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Failed to sync the addresses of Services")
			}
		}
	}
}

// sync listens on exactly the current addresses.
func (f *forwarder) sync(ctx context.Context) error {
	addresses, err := f.proxy.addresses()
	if err != nil {
		return err
	}
	for address, end := range f.listeners {
		if _, wanted := addresses[address]; !wanted {
			end()
			delete(f.listeners, address)
		}
	}
	for address, dial := range addresses {
		if _, listens := f.listeners[address]; listens {
			continue
		}
		listening, end := context.WithCancel(ctx)
		if err := f.listen(listening, address, dial); err != nil {
			end()
			return err
		}
		f.listeners[address] = end
	}
	return nil
}

// listen forwards connections to an address until ctx ends.
func (f *forwarder) listen(ctx context.Context, address string, dial func(context.Context) (net.Conn, error)) error {
	listener, err := listen(ctx, f.network, address)
	if err != nil {
		return fmt.Errorf("failed to listen for a Service: %w", err)
	}
	f.proxy.node.running.Go(func() {
		if err := balancer.Through(dial).Serve(ctx, listener); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to forward connections", "address", address)
		}
	})
	return nil
}
