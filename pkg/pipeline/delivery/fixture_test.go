// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fixture is a cluster with an HTTP sink.
type fixture struct {
	*testing.T
	cluster *fake.Clientset
	spec    v1alpha1.HTTPSink
	dial    outbound.Dial
	// environment has the proxies of the environment.
	environment *proxy.Environment
	// resolver resolves names behind proxies.
	resolver *net.Resolver
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{
		T: t, cluster: fake.NewClientset(), dial: (&net.Dialer{}).DialContext,
		// The timeout is long enough for slow machines.
		spec: v1alpha1.HTTPSink{Format: v1alpha1.PipelineFormatCloudEvents, Timeout: &metav1.Duration{Duration: 5 * time.Minute}},
	}
}

// receiver starts a receiver and sets the URL of the sink.
func (s *fixture) receiver(handler http.HandlerFunc) *httptest.Server {
	s.Helper()
	server := httptest.NewServer(handler)
	s.Cleanup(server.Close)
	s.spec.URL = server.URL
	return server
}

// secret creates or updates the Secret of the sink.
func (s *fixture) secret(data map[string]string) {
	s.Helper()
	s.spec.SecretRef = &v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "receiver"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "receiver"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	secrets := s.cluster.CoreV1().Secrets("ops")
	if _, err := secrets.Update(s.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(s.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// network allows proxies to connect to this host only.
func (s *fixture) network() *proxy.Network {
	s.Helper()
	policy, err := egress.NewPolicy([]string{egress.Loopback})
	if err != nil {
		s.Fatal(err)
	}
	return &proxy.Network{Direct: s.dial, Check: policy.Check, Environment: s.environment, Resolver: s.resolver}
}

func (s *fixture) sink() *delivery.HTTP {
	s.Helper()
	sink, err := delivery.NewHTTP(
		delivery.Config{Secrets: s.cluster.CoreV1(), Network: s.network(), Clock: clocktesting.NewFakePassiveClock(noon)},
		format.Source{Pipeline: "search", Sink: "index"}, s.spec,
	)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(sink.Close)
	return sink
}

// recorder records the results of the parts of a batch.
type recorder struct {
	keys    []int
	results []format.Result
}

func (r *recorder) record(keys []item.Key, result format.Result) error {
	r.keys = append(r.keys, len(keys))
	r.results = append(r.results, result)
	return nil
}

// deliver sends a batch that makes one call, and returns the result.
func (s *fixture) deliver(sink delivery.Sink) format.Result {
	s.Helper()
	var got recorder
	if err := sink.Deliver(s.Context(), batch(1), got.record); err != nil {
		s.Fatal(err)
	}
	if len(got.results) != 1 || got.keys[0] != 1 {
		s.Fatalf("got %+v, want one result on one object", got)
	}
	return got.results[0]
}

// batch returns a batch with a number of deleted definitions.
func batch(size int) item.Batch {
	batch := item.Batch{ID: "batch-1", Sequence: 1, At: noon, Kind: item.CustomResourceDefinition}
	for i := range size {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".example.com"
		batch.Deletes = append(batch.Deletes, item.Key{Kind: item.CustomResourceDefinition, ObjectKind: "Gone", Name: name})
	}
	return batch
}

// failingDial returns a dialer that always fails.
func failingDial(err error) outbound.Dial {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

var errBroken = errors.New("the store fails")
