// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// relay forwards the audit events of kube-apiserver, which has only one webhook, to the tools that run.
type relay struct {
	// kubeconfig is that of kube-apiserver.
	kubeconfig string

	mutex   sync.Mutex
	targets map[string]target
}

// target is a tool's address for audit events.
type target struct {
	client *http.Client
	url    string
}

func newRelay(b *testing.B) *relay {
	b.Helper()
	r := &relay{kubeconfig: filepath.Join(b.TempDir(), "audit-webhook"), targets: map[string]target{}}
	server := httptest.NewServer(r)
	b.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["relay"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["relay"] = &clientcmdapi.Context{Cluster: "relay"}
	config.CurrentContext = "relay"
	if err := clientcmd.WriteToFile(*config, r.kubeconfig); err != nil {
		b.Fatal(err)
	}
	return r
}

// forward adds a tool that runs, and forget removes it.
func (r *relay) forward(tool string, to target) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.targets[tool] = to
}

func (r *relay) forget(tool string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.targets, tool)
}

// ServeHTTP forwards events to all tools at once. kube-apiserver sends them again after an error.
func (r *relay) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	events, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	group, ctx := errgroup.WithContext(request.Context())
	for _, to := range r.targets {
		group.Go(func() error { return to.post(ctx, events) })
	}
	r.mutex.Unlock()
	if err := group.Wait(); err != nil {
		http.Error(response, err.Error(), http.StatusBadGateway)
	}
}

func (t target) post(ctx context.Context, events []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(events))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1000)) // only for the message
		return fmt.Errorf("%s returned %s: %s", t.url, response.Status, body)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
