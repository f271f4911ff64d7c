// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// TestJobGolden compares the Job and the ConfigMap of each template with its golden file.
func TestJobGolden(t *testing.T) {
	templates, err := filepath.Glob(filepath.Join("testdata", "*.template.yaml"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	for _, path := range templates {
		name := strings.TrimSuffix(filepath.Base(path), ".template.yaml")
		t.Run(name, func(t *testing.T) {
			template, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := newJobFixture(t)
			if s.spec.Template.Raw, err = yaml.YAMLToJSON(template); err != nil {
				t.Fatal(err)
			}
			if got := s.deliver(jobBatch(7)); got.Outcome != format.Delivered {
				t.Fatalf("got %+v", got)
			}
			var got strings.Builder
			for _, made := range []metav1.Object{s.only(), &s.configMaps()[0]} {
				made.SetManagedFields(nil)
				text, err := yaml.Marshal(made)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n" + string(text))
			}
			golden := filepath.Join("testdata", name+".made.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// Names are unique and valid for labels and Pods.
func TestJobNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	seen := map[string]bool{}
	for _, source := range []format.Source{
		{Pipeline: "search", Sink: "index"}, {Pipeline: "search-index", Sink: "a"}, {Pipeline: "search", Sink: "index-a"},
		{Pipeline: long, Sink: long}, {Pipeline: long, Sink: "y"}, {Pipeline: strings.Repeat("x", 40) + "-y", Sink: "z"},
	} {
		for number := range int64(3) {
			s := newJobFixture(t)
			s.source = source
			s.deliver(jobBatch(number))
			made := s.only()
			if problems := utilvalidation.IsDNS1123Label(made.Name); len(made.Name) > 52 || len(problems) > 0 || seen[made.Name] {
				t.Errorf("%s is too long, not unique or not a valid label: %v", made.Name, problems)
			}
			seen[made.Name] = true
			for _, value := range made.Labels {
				if problems := utilvalidation.IsValidLabelValue(value); len(problems) > 0 {
					t.Errorf("label %s: %v", value, problems)
				}
			}
		}
	}
}

// A batch that is too large for a ConfigMap creates no Job.
func TestBatchTooLargeForConfigMap(t *testing.T) {
	s := newJobFixture(t)
	large := jobBatch(1)
	large.Upserts = append(large.Upserts, item.Item{Annotations: map[string]string{"a": strings.Repeat("x", 1<<20)}})
	got := s.deliver(large)
	if got.Outcome != format.Rejected || !strings.Contains(got.Message, "lower spec.batch.maxItems") || len(s.jobs()) > 0 {
		t.Errorf("got %+v", got)
	}
}
