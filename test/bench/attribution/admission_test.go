// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// reviewsAtOnce is the maximum number of concurrent reviews.
	reviewsAtOnce = 64
	// admissionRounds is the number of measurements of each path.
	admissionRounds = 3
)

// endpoint is a URL for reviews, with a client that is allowed to post them.
type endpoint struct {
	client *http.Client
	url    string
}

// direct returns the endpoint at the secret path of the server.
func direct(b *testing.B, s *mirrortest.AdminCluster) endpoint {
	b.Helper()
	segment, err := os.ReadFile(s.Env(devcluster.EnvAdmissionSegmentFile))
	if err != nil {
		b.Fatal(err)
	}
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	return endpoint{clientOf(b, config), s.Env(devcluster.EnvServerURL) + "/process-validating-webhook/" + strings.TrimSpace(string(segment))}
}

// aggregated returns the endpoint through the aggregation layer, with the credentials of kube-apiserver.
func aggregated(b *testing.B, s *mirrortest.AdminCluster) endpoint {
	b.Helper()
	user, err := s.User("system:apiserver", "system:masters")
	if err != nil {
		b.Fatal(err)
	}
	config, err := user.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	return endpoint{clientOf(b, config), config.Host + "/apis/configbutler.ai/v1alpha1/admissionreviews"}
}

func clientOf(b *testing.B, config *rest.Config) *http.Client {
	b.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// admission posts reviews to the server itself and through the aggregator, in alternating rounds, so that other load meets both.
func admission(b *testing.B, s *mirrortest.AdminCluster) {
	b.Helper()
	paths := []endpoint{direct(b, s), aggregated(b, s)}
	took := make([][]time.Duration, len(paths))
	for range admissionRounds {
		for i, path := range paths {
			took[i] = append(took[i], path.measure(b)...)
		}
	}
	for i, name := range []string{"direct", "aggregator"} {
		b.ReportMetric(milliseconds(took[i], 0.5), name+"-p50-ms")
		b.ReportMetric(milliseconds(took[i], 0.99), name+"-p99-ms")
	}
	b.ReportMetric(milliseconds(took[1], 0.99)/milliseconds(took[0], 0.99), "aggregator/direct")
	noneDropped(b, s)
}

// measure posts reviews of changes of different objects and returns the latency of each response, from the time at
// which the review was due: a slow response delays the following reviews, and the delay is included.
func (e endpoint) measure(b *testing.B) (took []time.Duration) {
	b.Helper()
	for number := range reviewsAtOnce { // open the connections
		if err := e.post(b.Context(), number); err != nil {
			b.Fatal(err)
		}
	}
	var mutex sync.Mutex
	paced(b, reviewRate, reviewsAtOnce, func(ctx context.Context, number int, due time.Time) error {
		if err := e.post(ctx, number); err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		took = append(took, time.Since(due))
		return nil
	})
	return took
}

// milliseconds returns the time within which a share of the responses came.
func milliseconds(took []time.Duration, share float64) float64 {
	slices.Sort(took)
	return float64(took[max(int(math.Ceil(share*float64(len(took))))-1, 0)]) / float64(time.Millisecond)
}

// noneDropped fails if the server responded to reviews without recording them, which would be faster.
func noneDropped(b *testing.B, s *mirrortest.AdminCluster) {
	b.Helper()
	out := s.Run(b, "get", "--raw", "/metrics", "--server="+s.Env(devcluster.EnvServerURL), "--insecure-skip-tls-verify")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, `slipstream_admission_reviews_total{outcome="dropped"}`) ||
			strings.HasPrefix(line, "slipstream_kv_evictions_total ") {
			if _, count, _ := strings.Cut(strings.TrimSpace(line), " "); count != "0" {
				b.Errorf("reviews were dropped: %s", line)
			}
		}
	}
}

// post fails unless the change is allowed.
func (e endpoint) post(ctx context.Context, number int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(review(number)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("response %s: %w", response.Status, err)
	}
	if answer.Response == nil || !answer.Response.Allowed {
		return fmt.Errorf("response %s: %+v", response.Status, answer.Response)
	}
	return nil
}

// review returns a review of an update of a ConfigMap of 1 KiB.
func review(number int) []byte {
	object := func(version int) runtime.RawExtension {
		return runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%03d","namespace":"bench","uid":"u%d",`+
				`"resourceVersion":"%d"},"data":{"value":"%1000d"}}`, number%1000, number%1000, number, version)}
	}
	content, _ := json.Marshal(admissionv1.AdmissionReview{ // cannot fail
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(fmt.Sprint(number)), Operation: admissionv1.Update, Namespace: "bench", Name: fmt.Sprintf("c%03d", number%1000),
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			UserInfo: authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers"}},
			Object:   object(number + 1), OldObject: object(number),
		},
	})
	return content
}
