// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/client-go/rest"
)

// TestLoopbackWhileShuttingDown checks that a server that refuses the requests of its clients serves its own. Otherwise a request in
// flight that needs another one is repeated every five seconds until its timeout, and so is the shutdown, which waits for it.
func TestLoopbackWhileShuttingDown(t *testing.T) {
	shuttingDown := make(chan struct{})
	close(shuttingDown)
	server := httptest.NewServer(filters.WithRetryAfter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "configbutler.ai/v1alpha1", "kind": "GitDestinationList", "items": [{"metadata": {"name": "a"}}]}`)
	}), shuttingDown))
	t.Cleanup(server.Close)
	response, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("a client gets status %d, want %d; error %v", response.StatusCode, http.StatusTooManyRequests, err)
	}
	client, err := newLoopbackClient(&rest.Config{Host: server.URL}, "admission")
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ConfigbutlerV1alpha1().GitDestinations("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("the server itself gets %+v, %v, want the list", list, err)
	}
}
