// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving proves on real servers that certificates and authorities change while clients go on asking: through
// the aggregator of a real kube-apiserver, and through a webhook without it.
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

const (
	// deadline is more than anything waited for here takes on a busy machine.
	deadline = 3 * time.Minute
	// longestGap is how long a client may be without an answer. It is meant to be none; a busy machine may take some time.
	longestGap = time.Minute
	// serverName is the name by which kube-apiserver knows the server.
	serverName = "slipstream." + devcluster.ServerNamespace + ".svc"
)

var (
	repositories = v1alpha1.SchemeGroupVersion.WithResource("gitrepoconfigs")
	apiServices  = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// stage is a cluster whose clients ask all the time.
type stage struct {
	*devcluster.Cluster
	admin   devcluster.Kubectl
	objects dynamic.Interface
	pids    string
	clients []*client
}

func newStage(t *testing.T, options devcluster.Options, flags ...string) *stage {
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
	return &stage{
		Cluster: cluster, admin: cluster.Kubectl(cluster.Admin()), objects: objects, pids: cluster.Env(devcluster.EnvServerPIDs),
	}
}

// kubectl runs a command of the administrator.
func (s *stage) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// client asks the same again and again.
type client struct {
	name string

	mutex           sync.Mutex
	asked, failed   int
	broken, longest time.Duration
	lastGood        time.Time
	lastFailure     error
}

// ask lets a client ask until the test ends, which fails if it was without an answer for long.
func (s *stage) ask(t *testing.T, name string, every time.Duration, question func(ctx context.Context) error) {
	t.Helper()
	c := &client{name: name, lastGood: time.Now()}
	s.clients = append(s.clients, c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) { c.note(ctx, question(ctx)) }, every)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (c *client) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	c.asked++
	if err != nil {
		c.failed++
		c.lastFailure = err
		c.broken = now.Sub(c.lastGood)
		c.longest = max(c.longest, c.broken)
		return
	}
	c.lastGood = now
}

// askAggregator lists a kind through the aggregator, over new connections of kube-apiserver's as over old ones.
func (s *stage) askAggregator(t *testing.T) {
	t.Helper()
	repositories := s.objects.Resource(repositories).Namespace("default")
	s.ask(t, "aggregator", 50*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, longestGap)
		defer cancel()
		_, err := repositories.List(ctx, metav1.ListOptions{})
		return err
	})
}

// askAfresh makes a connection to each server every time, and checks the certificate as kube-apiserver does, with what
// the APIService says.
func (s *stage) askAfresh(t *testing.T) {
	t.Helper()
	s.ask(t, "new connections", 200*time.Millisecond, func(ctx context.Context) error {
		_, err := s.handshake(ctx)
		return err
	})
}

// handshake returns the certificate of the server, if a client with the bundle in the APIService takes it.
func (s *stage) handshake(ctx context.Context) (*x509.Certificate, error) {
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

// shown returns the certificate of the server.
func (s *stage) shown(t *testing.T) *x509.Certificate {
	t.Helper()
	var found *x509.Certificate
	s.eventually(t, "a certificate", func(ctx context.Context) (err error) {
		found, err = s.handshake(ctx)
		return err
	})
	return found
}

// eventually waits until check is content.
func (s *stage) eventually(t *testing.T, what string, check func(ctx context.Context) error) {
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

// becomesOf waits until the server shows a certificate of an authority, by the name of that.
func (s *stage) becomesOf(t *testing.T, authority string) {
	t.Helper()
	s.eventually(t, "a certificate of "+authority, func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.Issuer.CommonName != authority {
			err = fmt.Errorf("it is of %s", found.Issuer.CommonName)
		}
		return err
	})
}

// enough is how often each client asks after a change, at least.
const enough = 25

// goOn waits until each client has asked some more.
func (s *stage) goOn(t *testing.T) {
	t.Helper()
	for _, each := range s.clients {
		asked := func() int {
			each.mutex.Lock()
			defer each.mutex.Unlock()
			return each.asked
		}
		before := asked()
		s.eventually(t, each.name+" to ask", func(context.Context) error {
			if asked() < before+enough {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

// undisturbed fails if a client was without an answer for long, or a server is another process than at the start.
func (s *stage) undisturbed(t *testing.T, what string) {
	t.Helper()
	s.goOn(t)
	for _, each := range s.clients {
		each.mutex.Lock()
		t.Logf("%s: %s asked %d times, %d failed, longest without an answer %v, last failure: %v",
			what, each.name, each.asked, each.failed, each.longest.Round(time.Millisecond), each.lastFailure)
		if time.Since(each.lastGood) > longestGap || each.longest > longestGap {
			t.Errorf("%s: %s was without an answer for %v: %v", what, each.name, each.longest, each.lastFailure)
		}
		each.asked, each.failed, each.longest, each.lastFailure = 0, 0, 0, nil
		each.mutex.Unlock()
	}
	if got := s.Env(devcluster.EnvServerPIDs); got != s.pids {
		t.Errorf("%s: the servers were %s and are %s", what, s.pids, got)
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

// serverLog is what the servers have logged of certificates.
func (s *stage) serverLog(t *testing.T) string {
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
