// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// requestLimit is the timeout of a request. It allows for a busy machine.
	requestLimit = 2 * time.Minute
	// requestInterval is the time between requests.
	requestInterval = 20 * time.Millisecond
	// numberAnnotation is the annotation that requests write.
	numberAnnotation = "number"
)

// requests is a client that reads and writes continuously.
type requests struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// longest is the longest time between two successful requests.
	longest   time.Duration
	succeeded int
	// repeated counts the writes that were repeated because kube-apiserver could not complete them.
	repeated int
	failures []error
}

// request reads and writes a GitRepoConfig of a namespace alternately through the aggregator, until stop is called.
func (s *testCluster) request(t *testing.T, namespace string) *requests {
	t.Helper()
	config, err := s.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &requests{cancel: cancel, ended: make(chan struct{})}
	path := "/apis/configbutler.ai/v1alpha1/namespaces/" + namespace + "/gitrepoconfigs/main"
	go r.run(ctx, client.Discovery().RESTClient(), path)
	return r
}

func (r *requests) run(ctx context.Context, client rest.Interface, path string) {
	defer close(r.ended)
	ticker := time.NewTicker(requestInterval)
	defer ticker.Stop()
	success := time.Now()
	for number := 0; ctx.Err() == nil; number++ {
		err := one(ctx, client, path, number, func(error) { r.repeated++ })
		switch {
		case err == nil:
			now := time.Now()
			r.longest, success = max(r.longest, now.Sub(success)), now
			r.succeeded++
		case ctx.Err() == nil:
			r.failures = append(r.failures, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// one reads or writes once. The annotation that it writes is not part of the compared content.
func one(ctx context.Context, client rest.Interface, path string, number int, repeated func(error)) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if number%2 == 0 {
		return client.Get().AbsPath(path).Do(ctx).Error()
	}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "%d"}}}`, numberAnnotation, number)
	return clustertest.Again(func() error {
		return client.Patch(types.MergePatchType).AbsPath(path).Body([]byte(patch)).Do(ctx).Error()
	}, repeated)
}

// stop ends the requests and logs their results.
func (r *requests) stop(t *testing.T, during string) {
	t.Helper()
	r.cancel()
	<-r.ended
	t.Logf("%s: %d requests succeeded, %d of them repeated, %d failed, longest gap %v",
		during, r.succeeded, r.repeated, len(r.failures), r.longest.Round(time.Millisecond))
	if r.succeeded == 0 {
		t.Errorf("no request succeeded: %v", errors.Join(r.failures[:min(len(r.failures), 3)]...))
	}
}
