// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// name is the node's, as Pods say where they run.
	name = "node"
	// loopback is where everything listens, in each network.
	loopback = "127.0.0.1"
)

// firstPodAddress is that of the first Pod. No packet ever goes there: EndpointSlices must not have addresses of loopback.
var firstPodAddress = netip.MustParseAddr("10.244.0.1")

// Image is what a registry would have.
type Image struct {
	// Root is the folder with its files.
	Root string
	// Entrypoint is what runs if a container names no command.
	Entrypoint []string
}

// Options say where Pods run, and of what.
type Options struct {
	// Dir is the folder for volumes and logs. It must be there.
	Dir string
	// User is as whom the node works: somebody whom no authorization stops.
	User devcluster.Kubeconfig
	// Namespace is the one whose Pods run here.
	Namespace string
	// Support is the program hack/dev.
	Support string
	// Images are by the references of Pods.
	Images map[string]Image
	// Outside are addresses in the networks of Pods, as ADDRESS:PORT, by which these reach one of the machine's.
	Outside map[string]string
}

// Node runs the Pods of a namespace.
type Node struct {
	options Options
	client  kubernetes.Interface
	// apiServer is the address of the API server in the cluster, fixed the addresses in the networks of Pods that lead to
	// the machine's.
	apiServer string
	fixed     map[string]string
	proxy     *proxy
	cancel    context.CancelFunc
	running   sync.WaitGroup

	// mutex guards the Pods, and the address of the next one.
	mutex sync.Mutex
	pods  map[types.UID]*pod
	next  netip.Addr
}

// Start starts a node, which runs until Stop.
func Start(ctx context.Context, options Options) (*Node, error) {
	config, err := options.User.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the node's client: %w", err)
	}
	if err := register(ctx, client); err != nil {
		return nil, err
	}
	apiServer, err := apiServerService(ctx, client)
	if err != nil {
		return nil, err
	}
	n := &Node{options: options, client: client, apiServer: apiServer, pods: map[types.UID]*pod{}, next: firstPodAddress}
	n.fixed = map[string]string{net.JoinHostPort(apiServer, "443"): strings.TrimPrefix(config.Host, "https://")}
	maps.Copy(n.fixed, options.Outside)
	ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.run(ctx); err != nil {
		n.Stop()
		return nil, err
	}
	return n, nil
}

// Stop kills all Pods and returns when they are gone.
func (n *Node) Stop() {
	n.cancel()
	n.running.Wait()
}

// run begins to follow what the node has to act on.
func (n *Node) run(ctx context.Context) error {
	for _, folder := range []string{"logs", "pods", "claims"} {
		if err := os.MkdirAll(filepath.Join(n.options.Dir, folder), 0o755); err != nil {
			return fmt.Errorf("making the node's folders: %w", err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithNamespace(n.options.Namespace))
	var err error
	if n.proxy, err = newProxy(n, factory); err != nil {
		return err
	}
	if err := n.watch(ctx, factory); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	n.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	return n.proxy.serve(ctx, machine{}, nil)
}

// Logs are the ends of the logs of all Pods that ran.
func (n *Node) Logs() (string, error) {
	files, err := filepath.Glob(filepath.Join(n.options.Dir, "logs", "*.log"))
	var text strings.Builder
	for _, file := range files {
		content, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		fmt.Fprintf(&text, "--- the end of %s\n%s\n", filepath.Base(file), content[max(0, len(content)-logEnd):])
	}
	return text.String(), err
}

// watch follows Pods, and what they need.
func (n *Node) watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	for informer, act := range map[cache.SharedIndexInformer]func(object any, gone bool){
		core.Pods().Informer():                   func(object any, gone bool) { n.follow(ctx, object.(*corev1.Pod), gone) },
		core.Secrets().Informer():                func(any, bool) { n.refresh() },
		core.ConfigMaps().Informer():             func(any, bool) { n.refresh() },
		core.PersistentVolumeClaims().Informer(): func(object any, gone bool) { n.provision(ctx, object.(*corev1.PersistentVolumeClaim), gone) },
	} {
		if _, err := informer.AddEventHandler(handler(act)); err != nil {
			return fmt.Errorf("watching for what the node runs: %w", err)
		}
	}
	return nil
}

// handler calls act with each object that there is, and that has gone.
func handler(act func(object any, gone bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { act(object, false) },
		UpdateFunc: func(_, object any) { act(object, false) },
		DeleteFunc: func(object any) {
			if unknown, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = unknown.Obj
			}
			act(object, true)
		},
	}
}

// follow begins a Pod's life, and ends it.
func (n *Node) follow(ctx context.Context, object *corev1.Pod, gone bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	known, runs := n.pods[object.UID]
	switch {
	case gone && runs:
		known.kill()
		delete(n.pods, object.UID)
	case gone:
	case runs && object.DeletionTimestamp != nil:
		known.end(*object.DeletionGracePeriodSeconds)
	case !runs:
		n.pods[object.UID] = n.begin(ctx, object.DeepCopy())
		if object.DeletionTimestamp != nil {
			n.pods[object.UID].end(*object.DeletionGracePeriodSeconds)
		}
	}
}

// begin runs a Pod. The caller holds the mutex.
func (n *Node) begin(ctx context.Context, object *corev1.Pod) *pod {
	address := n.next
	n.next = n.next.Next()
	ctx, kill := context.WithCancel(ctx)
	p := newPod(n, object, address, kill)
	n.running.Go(func() { p.run(ctx) })
	return p
}

// refresh has all Pods look at their volumes again.
func (n *Node) refresh() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, p := range n.pods {
		p.lookAgain()
	}
}

// networkOf is the network of the Pod with an address.
func (n *Node) networkOf(address string) (network, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, p := range n.pods {
		if p.address.String() == address && p.network != nil {
			return p.network, nil
		}
	}
	return nil, fmt.Errorf("no Pod has the address %s", address)
}

// outside are the addresses of Outside, which Pods' networks need to have.
func (n *Node) outside() []netip.Addr {
	var addresses []netip.Addr
	for address := range n.options.Outside {
		addresses = append(addresses, netip.MustParseAddrPort(address).Addr())
	}
	return addresses
}
