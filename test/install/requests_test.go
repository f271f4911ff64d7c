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
)

const (
	// requestLimit is how long one request may take. That of a busy machine takes long and does not fail.
	requestLimit = 2 * time.Minute
	// requestInterval lies between requests.
	requestInterval = 20 * time.Millisecond
	// numberAnnotation is what they write.
	numberAnnotation = "number"
)

// requests are those of a client that reads and writes all the time.
type requests struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// longest is the longest time from one success to the next.
	longest  time.Duration
	answered int
	failures []error
}

// request reads and writes a GitRepoConfig of a namespace in turn, through the aggregator, until stop.
func (s *stage) request(t *testing.T, namespace string) *requests {
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
		err := one(ctx, client, path, number)
		switch {
		case err == nil:
			now := time.Now()
			r.longest, success = max(r.longest, now.Sub(success)), now
			r.answered++
		case ctx.Err() == nil:
			r.failures = append(r.failures, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// one reads or writes once. What it writes does not count as content of the object.
func one(ctx context.Context, client rest.Interface, path string, number int) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if number%2 == 0 {
		return client.Get().AbsPath(path).Do(ctx).Error()
	}
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "%d"}}}`, numberAnnotation, number)
	return client.Patch(types.MergePatchType).AbsPath(path).Body([]byte(patch)).Do(ctx).Error()
}

// stop ends the requests and prints what became of them.
func (r *requests) stop(t *testing.T, during string) {
	t.Helper()
	r.cancel()
	<-r.ended
	t.Logf("%s: %d requests answered, %d failed, the longest time without an answer %v",
		during, r.answered, len(r.failures), r.longest.Round(time.Millisecond))
	if r.answered == 0 {
		t.Errorf("no request was answered: %v", errors.Join(r.failures[:min(len(r.failures), 3)]...))
	}
}
