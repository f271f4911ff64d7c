// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

const (
	// serviceNetwork has the addresses of Services. Nothing listens there unless a test takes the place of kube-proxy. The
	// network can be reached from this machine only.
	serviceNetwork = "127.96.0.0/16"
	serviceAddress = "127.96.0.1"
	serviceIssuer  = "https://kubernetes.default.svc"
	// receiverPart is the name of the receiver's process and log.
	receiverPart = "receiver"
)

// controllers are the controllers that work without nodes. They include all that clean up, because an unavailable
// aggregated API affects these clients first.
var controllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"resourcequota-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"replicaset-controller",
	"replicationcontroller-controller",
	"statefulset-controller",
	"daemonset-controller",
	"job-controller",
	"cronjob-controller",
	"ttl-after-finished-controller",
	"endpointslice-controller",
	"persistentvolumeclaim-protection-controller",
	"certificatesigningrequest-signing-controller",
}

// EtcdURL returns the client URL of the control plane's etcd, without TLS. Tests use it to compact and to read what the
// API servers store.
func (c *Cluster) EtcdURL() string { return "http://" + address(c.state.Ports.EtcdClient) }

// etcd is the store of the control plane. It runs without fsync, because its data is not needed after the cluster.
func (c *Cluster) etcd() part {
	client, peer := c.EtcdURL(), "http://"+address(c.state.Ports.EtcdPeer)
	return part{
		spec: c.spec("etcd", c.state.Programs.Etcd,
			"--name=dev",
			"--data-dir="+c.files.etcd(),
			"--listen-client-urls="+client,
			"--advertise-client-urls="+client,
			"--listen-peer-urls="+peer,
			"--initial-advertise-peer-urls="+peer,
			"--initial-cluster=dev="+peer,
			"--unsafe-no-fsync",
			"--log-level=warn",
		),
		// Before 3.5.11, etcd has no /readyz.
		ready: c.healthy(client + "/health"),
	}
}

// apiServer is the kube-apiserver with the aggregator in front of the slipstream
// server.
func (c *Cluster) apiServer() part {
	pki := c.files
	return part{
		spec: c.spec("kube-apiserver", c.state.Programs.APIServer, slices.Concat(c.auditFlags(), c.podFlags(), c.versionFlags(), []string{
			"--etcd-servers=" + c.EtcdURL(),
			"--bind-address=" + loopback,
			"--advertise-address=" + loopback,
			fmt.Sprintf("--secure-port=%d", c.state.Ports.APIServer),
			// Endpoints must not be loopback addresses, and nothing uses these.
			"--endpoint-reconciler-type=none",
			"--tls-cert-file=" + pki.certificate(apiServerCertificate),
			"--tls-private-key-file=" + pki.key(apiServerCertificate),
			"--client-ca-file=" + pki.certificate(clusterAuthority),
			"--requestheader-client-ca-file=" + pki.certificate(frontProxyAuthority),
			"--requestheader-allowed-names=" + frontProxyUserName,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + pki.certificate(frontProxyCertificate),
			"--proxy-client-key-file=" + pki.key(frontProxyCertificate),
			"--authorization-mode=RBAC",
			"--allow-privileged",
			"--service-cluster-ip-range=" + serviceNetwork,
			"--service-account-issuer=" + serviceIssuer,
			"--service-account-key-file=" + pki.join("pki", serviceAccountKey+".pub"),
			"--service-account-signing-key-file=" + pki.key(serviceAccountKey),
		}, c.state.Options.APIServerArgs)...),
		ready: c.healthy(c.apiServerURL() + "/readyz"),
	}
}

// versionFlags returns the flags of kube-apiserver that older versions lack.
func (c *Cluster) versionFlags() []string {
	if c.state.Programs.Minor() < 32 {
		return nil
	}
	return []string{"--requestheader-uid-headers=X-Remote-Uid"}
}

// KubernetesMinor returns the minor version of the control plane, such as 37.
func (c *Cluster) KubernetesMinor() int { return c.state.Programs.Minor() }

// StartAPIServer starts a second kube-apiserver on the store of the control plane, with additional flags, and returns its URL. It has the
// certificates and the users of the first, and ends with the cluster.
func (c *Cluster) StartAPIServer(ctx context.Context, flags ...string) (string, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	url := "https://" + address(c.state.Ports.SecondAPIServer)
	second := part{spec: c.apiServer().spec, ready: c.healthy(url + "/readyz")}
	second.spec.Name += "-2"
	second.spec.Log = c.files.log(second.spec.Name)
	// Of a flag that is given twice, the last value counts. The audit log is that of the first.
	second.spec.Args = slices.Concat(second.spec.Args, []string{
		fmt.Sprintf("--secure-port=%d", c.state.Ports.SecondAPIServer), "--audit-log-path=",
	}, flags)
	return url, c.startPart(ctx, second)
}

// RestartAPIServer ends kube-apiserver with a signal, starts it on the same store, and returns when it is ready.
func (c *Cluster) RestartAPIServer(ctx context.Context, signal syscall.Signal) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	first := c.apiServer()
	for _, running := range c.state.Processes {
		if running.Name != first.spec.Name {
			continue
		}
		if err := running.Stop(ctx, signal); err != nil {
			return err
		}
	}
	if err := c.forgetEnded(ctx); err != nil {
		return err
	}
	return c.startPart(ctx, first)
}

// controllerManager is the kube-controller-manager. Its rate limit is higher than usual, so that tests need not wait
// for it.
func (c *Cluster) controllerManager() part {
	kubeconfig := c.files.kubeconfig(controllerManagerCertificate)
	return part{
		spec: c.spec("kube-controller-manager", c.state.Programs.ControllerManager,
			"--bind-address="+loopback,
			fmt.Sprintf("--secure-port=%d", c.state.Ports.ControllerManager),
			"--tls-cert-file="+c.files.certificate(controllerManagerCertificate),
			"--tls-private-key-file="+c.files.key(controllerManagerCertificate),
			"--kubeconfig="+kubeconfig,
			"--authentication-kubeconfig="+kubeconfig,
			"--authorization-kubeconfig="+kubeconfig,
			"--use-service-account-credentials",
			"--service-account-private-key-file="+c.files.key(serviceAccountKey),
			"--root-ca-file="+c.files.certificate(clusterAuthority),
			"--cluster-signing-cert-file="+c.files.certificate(clusterAuthority),
			"--cluster-signing-key-file="+c.files.key(clusterAuthority),
			"--leader-elect=false",
			"--kube-api-qps=400",
			"--kube-api-burst=800",
			"--controllers="+strings.Join(controllers, ","),
		),
		ready: c.ControllerManagerHealthy,
	}
}

// ControllerManagerHealthy returns an error unless the kube-controller-manager and all its controllers report that they
// are healthy.
func (c *Cluster) ControllerManagerHealthy(ctx context.Context) error {
	return c.healthy("https://" + address(c.state.Ports.ControllerManager) + "/healthz")(ctx)
}

// gitServer serves the folder of the repositories over HTTP and SSH.
func (c *Cluster) gitServer() part {
	return part{
		spec: c.spec("git-server", c.state.Options.SupportProgram, "git-server",
			"--root="+c.files.git(),
			"--http-address="+address(c.state.Ports.GitHTTP),
			"--ssh-address="+address(c.state.Ports.GitSSH),
			"--ssh-host-key="+c.files.key(gitHostKey),
			"--ssh-authorized-keys="+c.files.join("pki", gitAuthorizedKeys),
		),
		ready: c.healthy(c.gitURL() + "/healthz"),
	}
}

// receiver writes what pipelines send to its log.
func (c *Cluster) receiver() part {
	return part{
		spec:  c.spec(receiverPart, c.state.Options.SupportProgram, "receiver", "--address="+address(c.state.Ports.Receiver)),
		ready: c.healthy(c.receiverURL() + "/healthz"),
	}
}

// spec returns the spec of a part's process with its own log. Garbage is collected less often than by default, which saves a
// quarter of the CPU.
func (c *Cluster) spec(name, program string, arguments ...string) process.Spec {
	return process.Spec{Name: name, Path: program, Args: arguments, Log: c.files.log(name), Env: garbageCollection()}
}

// garbageCollection returns the variable for the garbage collector of a part, none if the environment has it.
func garbageCollection() []string {
	if _, set := os.LookupEnv("GOGC"); set {
		return nil
	}
	return []string{"GOGC=400"}
}

func (c *Cluster) apiServerURL() string { return "https://" + address(c.state.Ports.APIServer) }
func (c *Cluster) receiverURL() string  { return "http://" + address(c.state.Ports.Receiver) }
func (c *Cluster) gitURL() string       { return "http://" + address(c.state.Ports.GitHTTP) }
