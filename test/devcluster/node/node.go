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
	// name is the name of the node in spec.nodeName.
	name = "node"
	// loopback is the listen address in each network.
	loopback = "127.0.0.1"
)

// firstPodAddress is the address of the first Pod. No packet is sent there: EndpointSlices must not have loopback addresses.
var firstPodAddress = netip.MustParseAddr("10.244.0.1")

// Image is a container image.
type Image struct {
	// Root is the folder with its files.
	Root string
	// Entrypoint is the default command of containers.
	Entrypoint []string
}

// Options configure a node.
type Options struct {
	// Dir is the folder for volumes and logs. It must exist.
	Dir string
	// User is the user of the node, which must bypass authorization.
	User devcluster.Kubeconfig
	// Namespace is the namespace of the Pods.
	Namespace string
	// Support is the program hack/dev.
	Support string
	// Images are the images by their references in Pods.
	Images map[string]Image
	// Outside maps addresses in the networks of Pods, as ADDRESS:PORT, to addresses of the machine.
	Outside map[string]string
}

// Node runs the Pods of a namespace.
type Node struct {
	options Options
	client  kubernetes.Interface
	// apiServer is the address of the API server in the cluster. fixed maps addresses in the networks of Pods to addresses of
	// the machine.
	apiServer string
	fixed     map[string]string
	proxy     *proxy
	cancel    context.CancelFunc
	running   sync.WaitGroup

	// mutex guards the Pods and the next address.
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
		return nil, fmt.Errorf("failed to create the node's client: %w", err)
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

// Stop kills all Pods and waits until they have ended.
func (n *Node) Stop() {
	n.cancel()
	n.running.Wait()
}

// run starts the informers of the node.
func (n *Node) run(ctx context.Context) error {
	for _, folder := range []string{"logs", "pods", "claims"} {
		if err := os.MkdirAll(filepath.Join(n.options.Dir, folder), 0o755); err != nil {
			return fmt.Errorf("failed to create the node's folders: %w", err)
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

// Logs returns the ends of the logs of all Pods.
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

// watch watches the Pods and the objects that they use.
func (n *Node) watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	for informer, act := range map[cache.SharedIndexInformer]func(object any, gone bool){
		core.Pods().Informer():                   func(object any, gone bool) { n.follow(ctx, object.(*corev1.Pod), gone) },
		core.Secrets().Informer():                func(any, bool) { n.refresh() },
		core.ConfigMaps().Informer():             func(any, bool) { n.refresh() },
		core.PersistentVolumeClaims().Informer(): func(object any, gone bool) { n.provision(ctx, object.(*corev1.PersistentVolumeClaim), gone) },
	} {
		if _, err := informer.AddEventHandler(handler(act)); err != nil {
			return fmt.Errorf("failed to watch Pods: %w", err)
		}
	}
	return nil
}

// handler calls act for each object that exists or was deleted.
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

// follow starts or stops a Pod.
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

// begin starts a Pod. The caller holds the mutex.
func (n *Node) begin(ctx context.Context, object *corev1.Pod) *pod {
	address := n.next
	n.next = n.next.Next()
	ctx, kill := context.WithCancel(ctx)
	p := newPod(n, object, address, kill)
	n.running.Go(func() { p.run(ctx) })
	return p
}

// refresh makes all Pods check their volumes again.
func (n *Node) refresh() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, p := range n.pods {
		p.checkVolumes()
	}
}

// networkOf returns the network of the Pod with an address.
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

// outside returns the addresses of Outside, which the networks of Pods must have.
func (n *Node) outside() []netip.Addr {
	var addresses []netip.Addr
	for address := range n.options.Outside {
		addresses = append(addresses, netip.MustParseAddrPort(address).Addr())
	}
	return addresses
}
