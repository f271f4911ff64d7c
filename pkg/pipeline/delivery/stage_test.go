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

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// stage is a cluster with a sink, whose receiver a test brings.
type stage struct {
	*testing.T
	cluster *fake.Clientset
	spec    v1alpha1.HTTPSink
	dial    delivery.Dial
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{
		T: t, cluster: fake.NewClientset(), dial: (&net.Dialer{}).DialContext,
		// Nothing takes as long on a slow machine: a test that expects an answer does not get a timeout.
		spec: v1alpha1.HTTPSink{Format: v1alpha1.PipelineFormatCloudEvents, Timeout: &metav1.Duration{Duration: 5 * time.Minute}},
	}
}

// receiver starts a receiver and has the sink name it.
func (s *stage) receiver(handler http.HandlerFunc) *httptest.Server {
	s.Helper()
	server := httptest.NewServer(handler)
	s.Cleanup(server.Close)
	s.spec.URL = server.URL
	return server
}

// secret stores the Secret that the sink names.
func (s *stage) secret(data map[string]string) {
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

func (s *stage) sink() *delivery.HTTP {
	s.Helper()
	sink, err := delivery.NewHTTP(
		delivery.Config{Secrets: s.cluster.CoreV1(), Dial: s.dial, Clock: clocktesting.NewFakePassiveClock(noon)},
		format.Source{Pipeline: "search", Sink: "index"}, s.spec,
	)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(sink.Close)
	return sink
}

// told is what becomes of parts of a batch.
type told struct {
	keys     []int
	verdicts []format.Verdict
}

func (r *told) done(keys []item.Key, verdict format.Verdict) error {
	r.keys = append(r.keys, len(keys))
	r.verdicts = append(r.verdicts, verdict)
	return nil
}

// tell sends a batch that makes one call, and returns the verdict.
func (s *stage) tell(sink delivery.Sink) format.Verdict {
	s.Helper()
	var got told
	if err := sink.Deliver(s.Context(), batch(1), got.done); err != nil {
		s.Fatal(err)
	}
	if len(got.verdicts) != 1 || got.keys[0] != 1 {
		s.Fatalf("told %+v, want one verdict on one object", got)
	}
	return got.verdicts[0]
}

// batch has so many definitions that are gone.
func batch(size int) format.Batch {
	told := format.Batch{ID: "batch-1", Sequence: 1, At: noon, Kind: item.CustomResourceDefinition}
	for i := range size {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".example.com"
		told.Deletes = append(told.Deletes, item.Key{Kind: item.CustomResourceDefinition, ObjectKind: "Gone", Name: name})
	}
	return told
}

// failingDial is a network on which nothing can be reached, for one reason.
func failingDial(err error) delivery.Dial {
	return func(context.Context, string, string) (net.Conn, error) { return nil, err }
}

var errBroken = errors.New("the store is broken")
