// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving tests on real servers that certificates and authorities are replaced without interrupting clients: through the
// aggregator of a real kube-apiserver, and through a webhook without it.
package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// deadline is longer than any wait of these tests on a busy machine.
	deadline = 10 * time.Minute
	// longestGap is the maximum time between successful requests of a client. It allows for a busy machine.
	longestGap = 3 * time.Minute
	// requestTimeout is the timeout of a client's request. A request that hangs is followed by others within longestGap.
	requestTimeout = 20 * time.Second
	// authoritySecret is the Secret with the server's own authority.
	authoritySecret = "slipstream-ca"
	// serverName is the name of the server that kube-apiserver verifies.
	serverName = "slipstream." + devcluster.ServerNamespace + ".svc"
)

var (
	repositories = v1alpha1.SchemeGroupVersion.WithResource("gitrepoconfigs")
	apiServices  = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// testCluster is a cluster with clients that send requests continuously.
type testCluster struct {
	*devcluster.Cluster
	admin   devcluster.Kubectl
	objects dynamic.Interface
	pids    string
	clients []*client
}

func newTestCluster(t *testing.T, options devcluster.Options, flags ...string) *testCluster {
	t.Helper()
	options.Server = true
	options.ServerArgs = append(options.ServerArgs, flags...)
	cluster := clustertest.Start(t, options)
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &testCluster{
		Cluster: cluster, admin: cluster.Kubectl(cluster.Admin()), objects: objects, pids: cluster.Env(devcluster.EnvServerPIDs),
	}
}

// deleteAuthority deletes the Secret with the server's own authority, if it exists.
func (s *testCluster) deleteAuthority(ctx context.Context) error {
	err := s.objects.Resource(secrets).Namespace(devcluster.ServerNamespace).Delete(ctx, authoritySecret, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// client sends the same request repeatedly.
type client struct {
	name string

	mutex           sync.Mutex
	sent, failed    int
	broken, longest time.Duration
	lastGood        time.Time
	lastFailure     error
}

// startClient starts a client that sends requests until the test ends.
func (s *testCluster) startClient(t *testing.T, name string, every time.Duration, request func(ctx context.Context) error) {
	t.Helper()
	c := &client{name: name, lastGood: time.Now()}
	s.clients = append(s.clients, c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			limited, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			c.record(ctx, request(limited))
		}, every)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (c *client) record(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	c.sent++
	if err != nil {
		c.failed++
		c.lastFailure = err
		c.broken = now.Sub(c.lastGood)
		c.longest = max(c.longest, c.broken)
		return
	}
	c.lastGood = now
}

// testAggregator lists a kind through the aggregator.
func (s *testCluster) testAggregator(t *testing.T) {
	t.Helper()
	repositories := s.objects.Resource(repositories).Namespace("default")
	s.startClient(t, "aggregator", 50*time.Millisecond, func(ctx context.Context) error {
		_, err := repositories.List(ctx, metav1.ListOptions{})
		return err
	})
}

// testNewConnections opens a new connection to each server repeatedly, and verifies the certificate as kube-apiserver does, with the bundle
// of the APIService.
func (s *testCluster) testNewConnections(t *testing.T) {
	t.Helper()
	s.startClient(t, "new connections", 200*time.Millisecond, func(ctx context.Context) error {
		_, err := s.handshake(ctx)
		return err
	})
}

// handshake returns the certificate of the server, verified with the bundle of the APIService.
func (s *testCluster) handshake(ctx context.Context) (*x509.Certificate, error) {
	registration, err := s.objects.Resource(apiServices).Get(ctx, devcluster.APIServiceName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	encoded, _, _ := unstructured.NestedString(registration.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	address, err := url.Parse(s.Env(devcluster.EnvServerURL))
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: serverName}}
	connection, err := dialer.DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// certificate returns the current certificate of the server.
func (s *testCluster) certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	var found *x509.Certificate
	s.eventually(t, "a certificate", func(ctx context.Context) (err error) {
		found, err = s.handshake(ctx)
		return err
	})
	return found
}

// eventually waits until check succeeds.
func (s *testCluster) eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, deadline, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v (%v)\n%s", what, err, last, s.serverLog(t))
	}
}

// waitForAuthority waits until the certificate of the server has an authority with this name.
func (s *testCluster) waitForAuthority(t *testing.T, authority string) {
	t.Helper()
	s.eventually(t, "a certificate of "+authority, func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.Issuer.CommonName != authority {
			err = fmt.Errorf("authority is %s", found.Issuer.CommonName)
		}
		return err
	})
}

// enough is the minimum number of successful requests of each client after a change.
const enough = 10

// succeeded returns the number of successful requests, and the last failure.
func (c *client) succeeded() (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.sent - c.failed, c.lastFailure
}

// waitForRequests waits until more requests of each client have succeeded.
func (s *testCluster) waitForRequests(t *testing.T) {
	t.Helper()
	for _, each := range s.clients {
		before, _ := each.succeeded()
		s.eventually(t, "requests of "+each.name+" to succeed", func(context.Context) error {
			if now, failure := each.succeeded(); now < before+enough {
				return errors.Join(fmt.Errorf("%d have, want %d", now-before, enough), failure)
			}
			return nil
		})
	}
}

// expectUninterrupted fails if a client had no successful request for too long, or if a server was restarted.
func (s *testCluster) expectUninterrupted(t *testing.T, what string) {
	t.Helper()
	s.waitForRequests(t)
	for _, each := range s.clients {
		each.mutex.Lock()
		t.Logf("%s: %s sent %d requests, %d failed, longest gap %v, last failure: %v",
			what, each.name, each.sent, each.failed, each.longest.Round(time.Millisecond), each.lastFailure)
		if time.Since(each.lastGood) > longestGap || each.longest > longestGap {
			t.Errorf("%s: %s had no successful request for %v: %v", what, each.name, each.longest, each.lastFailure)
		}
		each.sent, each.failed, each.longest, each.lastFailure = 0, 0, 0, nil
		each.mutex.Unlock()
	}
	if got := s.Env(devcluster.EnvServerPIDs); got != s.pids {
		t.Errorf("%s: server processes were %s, are %s", what, s.pids, got)
	}
	for _, pid := range strings.Fields(s.pids) {
		number, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(number, 0); err != nil {
			t.Errorf("%s: server %s has ended: %v", what, pid, err)
		}
	}
}

// apiServerLog returns the log of kube-apiserver.
func (s *testCluster) apiServerLog() (string, error) {
	content, err := os.ReadFile(filepath.Join(s.Env(devcluster.EnvControlPlaneLogs), "kube-apiserver.log"))
	return string(content), err
}

// serverLog returns the log lines of the servers about certificates.
func (s *testCluster) serverLog(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(s.Env(devcluster.EnvServerLog))
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "ertificate") || strings.Contains(line, "uthorit") {
			found.WriteString(line)
		}
	}
	return found.String()
}
