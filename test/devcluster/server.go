// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	_ "embed"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

// Names of the slipstream server in the cluster.
const (
	// ServerNamespace is the namespace of the server's Lease.
	ServerNamespace = "slipstream-system"
	// APIServiceName is the APIService of the slipstream API.
	APIServiceName = "v1alpha1.configbutler.ai"

	serverService    = "slipstream"
	serverKubeconfig = "slipstream"
	serverPart       = "slipstream"
	balancerPart     = "balancer"
)

// servedVersion is the version of the slipstream API, served at servedPath.
var (
	servedVersion = schema.GroupVersion{Group: "configbutler.ai", Version: "v1alpha1"}
	servedPath    = "/apis/" + servedVersion.String()
)

// etcdPrefix separates the server's objects from the control plane's.
const etcdPrefix = "/slipstream"

//go:embed namespace.yaml
var namespaceManifest string

//go:embed apiservice.yaml
var apiServiceManifest string

// StartServer starts the slipstream servers that do not run, on the existing data,
// and returns when their API is available through the aggregator. It also works in a
// cluster that was started without a server, if the options name its program.
func (c *Cluster) StartServer(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.state.Options.ServerProgram == "" {
		return errors.New("failed to start the server: the options have no server program")
	}
	return c.startServers(ctx)
}

// StopServer sends a signal to the slipstream servers and waits until they have ended;
// it fails if one still runs after a minute. The numbers of replicas (from 0) limit
// it to those; none means all.
func (c *Cluster) StopServer(ctx context.Context, signal syscall.Signal, replicas ...int) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	failure := endGracefully(ctx, c.servers(replicas), signal)
	return errors.Join(failure, c.forgetEnded(ctx), c.writeEnvironment())
}

// WaitForServer waits until the slipstream servers have ended by themselves. One that still runs after the time that a graceful end may take
// is killed with the stacks of its goroutines in its log, and WaitForServer fails.
func (c *Cluster) WaitForServer(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var failure error
	for _, running := range c.servers(nil) {
		failure = errors.Join(failure, waitEnded(ctx, running))
	}
	return failure
}

// SignalServer sends a signal to one replica (from 0) of the slipstream server, which does not wait for an effect.
func (c *Cluster) SignalServer(signal syscall.Signal, replica int) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var failure error
	for _, running := range c.servers([]int{replica}) {
		failure = errors.Join(failure, running.Signal(signal))
	}
	return failure
}

// prepareNamespace creates the server's namespace.
func (c *Cluster) prepareNamespace(ctx context.Context) error {
	manifest := strings.ReplaceAll(namespaceManifest, "${NAMESPACE}", ServerNamespace)
	if err := c.apply(ctx, manifest); err != nil {
		return fmt.Errorf("failed to prepare the server's namespace: %w", err)
	}
	return nil
}

// startServers starts the servers and the balancer that do not run and waits until
// the API is available. The caller holds the mutex.
func (c *Cluster) startServers(ctx context.Context) error {
	if err := errors.Join(c.forgetEnded(ctx), c.prepareAccount(ctx)); err != nil {
		return err
	}
	for _, part := range c.serverParts() {
		if c.runs(part.spec.Name) {
			continue
		}
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	if err := c.writeEnvironment(); err != nil {
		return err
	}
	return c.reporter.Step("waiting for the API to be available through the aggregator", func() error {
		return c.register(ctx)
	})
}

// ReadServer sends a GET request of the administrator to a path of the server, without the aggregator, and returns the response. The
// server's certificate has another authority than kube-apiserver's and is not verified.
func (c *Cluster) ReadServer(ctx context.Context, path string) (string, error) {
	return c.readServer(ctx, c.serverURL(), path)
}

// ReadReplica is like ReadServer for one replica (from 0).
func (c *Cluster) ReadReplica(ctx context.Context, replica int, path string) (string, error) {
	return c.readServer(ctx, "https://"+address(c.state.Ports.Replicas[replica]), path)
}

func (c *Cluster) readServer(ctx context.Context, url, path string) (string, error) {
	config, err := c.Admin().RESTConfig()
	if err != nil {
		return "", err
	}
	config.Host = url
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	direct, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("failed to create a client: %w", err)
	}
	response, err := direct.RESTClient().Get().RequestURI(path).DoRaw(ctx)
	return string(response), err
}

// serverParts returns the servers, and the balancer in front of them if there are several.
func (c *Cluster) serverParts() []part {
	chosen := c.state.Ports
	var parts []part
	backends := make([]string, 0, len(chosen.Replicas))
	for replica, port := range chosen.Replicas {
		parts = append(parts, c.server(replica, port))
		backends = append(backends, address(port))
	}
	if len(backends) == 1 {
		return parts
	}
	return append(parts, part{
		spec: c.spec(balancerPart, c.state.Options.SupportProgram, "balancer",
			"--address="+address(chosen.Server), "--servers="+strings.Join(backends, ",")),
		ready: c.healthy(c.serverURL() + "/readyz"),
	})
}

// server returns one replica of the slipstream server. All replicas share one log: each
// line contains the id of its process.
func (c *Cluster) server(replica, port int) part {
	options := c.state.Options
	kubeconfig := c.files.kubeconfig(serverKubeconfig)
	arguments := []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.files.certificate(serverCertificate),
		"--tls-private-key-file=" + c.files.key(serverCertificate),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--namespace=" + ServerNamespace,
		"--data-dir=" + c.dataDir(replica),
		"--git-allow-insecure",
		"--allow-destinations=loopback",
	}
	arguments = append(arguments, c.attributionFlags()...)
	if options.Storage == StorageEtcd3 {
		arguments = append(arguments,
			"--storage-backend=etcd3",
			"--etcd-servers="+c.EtcdURL(),
			"--etcd-prefix="+etcdPrefix,
		)
	}
	spec := c.spec(serverName(replica), options.ServerProgram, append(arguments, options.ServerArgs...)...)
	spec.Env = options.ServerEnv
	spec.Log = c.files.log(serverPart)
	return part{spec: spec, ready: c.healthy("https://" + address(port) + "/readyz")}
}

// register creates the APIService, waits until it is available, and registers the admission webhook.
func (c *Cluster) register(ctx context.Context) error {
	bundle, err := os.ReadFile(c.files.certificate(serverAuthority))
	if err != nil {
		return fmt.Errorf("failed to read the server's authority: %w", err)
	}
	manifest := strings.NewReplacer(
		"${APISERVICE}", APIServiceName,
		"${NAMESPACE}", ServerNamespace,
		"${SERVICE}", serverService,
		"${PORT}", fmt.Sprint(c.state.Ports.Server),
		"${CA_BUNDLE}", base64.StdEncoding.EncodeToString(bundle),
		// A change makes the aggregator check the server at once; otherwise
		// it may take half a minute to notice that the server is back.
		"${REGISTERED}", time.Now().UTC().Format(time.RFC3339Nano),
	).Replace(apiServiceManifest)
	// As users do it: the documentation reads the annotation that kubectl apply leaves.
	if _, err := c.Kubectl(c.Admin()).Feed(ctx, manifest, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("failed to register the API: %w", err)
	}
	if err := c.waitServed(ctx); err != nil {
		return withLog(err, c.files.log(serverPart))
	}
	return c.registerAdmission(ctx)
}

// waitServed waits until the slipstream API is available through the aggregator, whose
// condition may be outdated, and until discovery contains its kinds,
// which the aggregator collects asynchronously.
func (c *Cluster) waitServed(ctx context.Context) error {
	admin, err := c.adminClient()
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, func(ctx context.Context) (bool, error) {
		last = served(ctx, admin)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("API is not available through the aggregator: %w (last error: %w)", err, last)
	}
	return nil
}

func served(ctx context.Context, admin *kubernetes.Clientset) error {
	if err := available(ctx, admin); err != nil {
		return err
	}
	if err := admin.RESTClient().Get().AbsPath(servedPath).Do(ctx).Error(); err != nil {
		return fmt.Errorf("failed to read %s: %w", servedPath, err)
	}
	_, kinds, _, err := admin.GroupsAndMaybeResources()
	if err != nil {
		return fmt.Errorf("failed to read discovery: %w", err)
	}
	// Before 1.30, kube-apiserver has no document of all kinds that this client reads: each group is read from its server.
	if kinds != nil && kinds[servedVersion] == nil {
		return errors.New("kinds missing in discovery")
	}
	return nil
}

// available returns an error unless the APIService is available.
func available(ctx context.Context, admin *kubernetes.Clientset) error {
	const path = "/apis/apiregistration.k8s.io/v1/apiservices/" + APIServiceName
	body, err := admin.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("failed to read %s: %w", path, err)
	}
	var service struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &service); err != nil {
		return fmt.Errorf("failed to decode %s: %w", path, err)
	}
	if !meta.IsStatusConditionTrue(service.Status.Conditions, "Available") {
		return fmt.Errorf("APIService is not available: %+v", service.Status.Conditions)
	}
	return nil
}

// forgetEnded removes the processes that have ended from the state. It waits for those that are about to end: nothing else would start them
// again.
func (c *Cluster) forgetEnded(ctx context.Context) error {
	var running []process.Process
	for _, each := range c.state.Processes {
		if each.Ending() {
			if err := each.Wait(ctx); err != nil {
				return err
			}
		}
		if each.Alive() {
			running = append(running, each)
		}
	}
	c.state.Processes = running
	return c.state.write(c.files.state())
}

// runs reports whether the part of that name runs.
func (c *Cluster) runs(name string) bool {
	for _, running := range c.state.Processes {
		if running.Name == name && running.Alive() {
			return true
		}
	}
	return false
}

// dataDir returns the folder of a replica's stores.
func (c *Cluster) dataDir(replica int) string {
	if c.state.Options.Replicas == 1 {
		return c.files.data()
	}
	return c.files.join("data", serverName(replica))
}

func (c *Cluster) serverURL() string { return "https://" + address(c.state.Ports.Server) }

// serverName returns the name of a replica's process.
func serverName(replica int) string { return fmt.Sprintf("%s-%d", serverPart, replica) }

// servers returns the processes of the given replicas of the slipstream server, or of
// all if none is given.
func (c *Cluster) servers(replicas []int) []process.Process {
	var chosen []process.Process
	for _, running := range c.state.Processes {
		if isReplica(running, replicas) {
			chosen = append(chosen, running)
		}
	}
	return chosen
}

// isReplica reports whether a process is one of the given replicas, or any of them if
// none is given.
func isReplica(running process.Process, replicas []int) bool {
	if len(replicas) == 0 {
		return strings.HasPrefix(running.Name, serverPart+"-")
	}
	return slices.ContainsFunc(replicas, func(replica int) bool { return running.Name == serverName(replica) })
}
