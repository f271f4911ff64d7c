// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// page is the number of objects of a page, as kubectl asks for.
	page = 500
	// pageRounds is how often the first and the second page of each kind are read.
	pageRounds = 50
)

// pages measures pages of the kinds with most objects, as JSON, through the aggregation layer.
func (s *testCluster) pages(b *testing.B) {
	b.Helper()
	var took []time.Duration
	for range pageRounds {
		for _, kind := range []string{"environments", "syncstatuses", "changes"} {
			next := ""
			for range 2 {
				began := time.Now()
				content, err := s.cluster.Discovery().RESTClient().Get().
					AbsPath("/apis/"+v1alpha1.SchemeGroupVersion.String()+"/"+kind).
					Param("limit", fmt.Sprint(page)).Param("continue", next).
					SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
				var list unstructured.UnstructuredList
				if err := list.UnmarshalJSON(content); err != nil || len(list.Items) == 0 {
					b.Fatalf("%s: %d objects: %v", kind, len(list.Items), err)
				}
				if next = list.GetContinue(); next == "" {
					break
				}
			}
		}
	}
	slices.Sort(took)
	for name, share := range map[string]float64{"page-p50-ms": 0.5, "page-p99-ms": 0.99} {
		b.ReportMetric(took[int(math.Ceil(share*float64(len(took))))-1].Seconds()*1000, name)
	}
}
