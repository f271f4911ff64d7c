// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

var (
	formats = []v1alpha1.PipelineFormat{
		v1alpha1.PipelineFormatClusterWhisperer, v1alpha1.PipelineFormatDotAI, v1alpha1.PipelineFormatCloudEvents,
	}
	source = pipelineformat.Source{Pipeline: "search", Sink: "index", Collection: "capabilities"}
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	deployment = item.Item{
		Key:         item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: "shop", Name: "web"},
		Labels:      map[string]string{"app": "web", "tier": "front"},
		Annotations: map[string]string{"description": `says "<hello>" & äöü`},
		// Times must not reveal the time zone of the server.
		CreatedAt: noon.In(time.FixedZone("CET", 3600)), UpdatedAt: noon.Add(time.Hour), UID: "0b5c0f3e-0d5a-4f0c-8f3b-6d2f8a1f9c10",
	}
	role = item.Item{
		Key: item.Key{
			Kind: item.Instance, APIVersion: "rbac.authorization.k8s.io/v1", ObjectKind: "ClusterRole", Name: "system:node",
		},
		CreatedAt: noon, UpdatedAt: noon, UID: "2",
	}
	gone = []item.Key{
		{Kind: item.Instance, APIVersion: "v1", ObjectKind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"},
		{Kind: item.Instance, APIVersion: "v1", ObjectKind: "Node", Name: "worker-1"},
	}
)

// definition returns the key of a CustomResourceDefinition.
func definition(kind, name string) item.Key {
	return item.Key{Kind: item.CustomResourceDefinition, ObjectKind: kind, Name: name}
}

func batch(kind item.Kind, upserts []item.Item, deletes []item.Key) item.Batch {
	return item.Batch{
		ID: "6f1c2a34-0000-4000-8000-000000000001", Sequence: 42, At: noon, Kind: kind, Upserts: upserts, Deletes: deletes,
	}
}

var batches = map[string]item.Batch{
	"instances":         batch(item.Instance, []item.Item{deployment, role}, gone),
	"instances-upserts": batch(item.Instance, []item.Item{role}, nil),
	"instances-deletes": batch(item.Instance, nil, gone[:1]),
	"definitions": batch(item.CustomResourceDefinition, []item.Item{
		{Key: definition("Certificate", "certificates.cert-manager.io")}, {Key: definition("SQL", "sqls.devopstoolkit.live")},
	}, []item.Key{definition("Widget", "widgets.example.com"), definition("Gear", "gears.example.com")}),
	"definitions-upserts": batch(item.CustomResourceDefinition,
		[]item.Item{{Key: definition("Certificate", "certificates.cert-manager.io")}}, nil),
	"definitions-deletes": batch(item.CustomResourceDefinition, nil, []item.Key{definition("Widget", "widgets.example.com")}),
}

func calls(t *testing.T, format v1alpha1.PipelineFormat, sent item.Batch) []pipelineformat.Call {
	t.Helper()
	f, err := pipelineformat.ByName(format)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.Calls(sent, source)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// dump formats calls as they are sent, with the keys of their objects.
func dump(made []pipelineformat.Call) []byte {
	var text bytes.Buffer
	for _, call := range made {
		fmt.Fprintf(&text, "POST %s\n", call.Path)
		for _, name := range slices.Sorted(maps.Keys(call.Header)) {
			fmt.Fprintf(&text, "%s: %s\n", name, strings.Join(call.Header[name], ", "))
		}
		fmt.Fprintf(&text, "\n%s\n\n", call.Body)
		for _, key := range call.Keys {
			fmt.Fprintf(&text, "# %s\n", key)
		}
	}
	return text.Bytes()
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; want:\n%s\ngot:\n%s", name, want, got)
	}
}

func TestCalls(t *testing.T) {
	for _, format := range formats {
		for name, sent := range batches {
			t.Run(string(format)+"/"+name, func(t *testing.T) {
				compare(t, strings.ToLower(string(format))+"-"+name+".txt", dump(calls(t, format, sent)))
			})
		}
	}
}

func TestDocument(t *testing.T) {
	for name, sent := range batches {
		text, err := pipelineformat.Document(sent, source)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "document-"+name+".json", append(text, '\n'))
	}
}

// TestCallsAreRepeatedExactly checks that the calls of a repeated batch are the same, and that each key is in one call.
func TestCallsAreRepeatedExactly(t *testing.T) {
	for _, format := range formats {
		for name, sent := range batches {
			first, second := calls(t, format, sent), calls(t, format, sent)
			if !bytes.Equal(dump(first), dump(second)) {
				t.Errorf("%s %s: calls of the repeated batch differ", format, name)
			}
			times := map[item.Key]int{}
			for _, call := range first {
				for _, key := range call.Keys {
					times[key]++
				}
			}
			for _, key := range keysOf(sent) {
				if times[key] != 1 {
					t.Errorf("%s %s: %s is in %d calls, want one", format, name, key, times[key])
				}
			}
			if len(times) != len(keysOf(sent)) {
				t.Errorf("%s %s: %d keys in all calls, want %d", format, name, len(times), len(keysOf(sent)))
			}
		}
	}
}

func keysOf(sent item.Batch) []item.Key {
	keys := slices.Clone(sent.Deletes)
	for _, upsert := range sent.Upserts {
		keys = append(keys, upsert.Key)
	}
	return keys
}

func TestNothingIsNull(t *testing.T) {
	bodies := map[string][]byte{}
	for name, sent := range batches {
		for _, format := range formats {
			for at, call := range calls(t, format, sent) {
				bodies[fmt.Sprintf("%s %s %d", format, name, at)] = call.Body
			}
		}
		document, err := pipelineformat.Document(sent, source)
		if err != nil {
			t.Fatal(err)
		}
		bodies["document "+name] = document
	}
	for name, body := range bodies {
		var payload any
		if err := json.Unmarshal(body, &payload); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if bytes.Contains(body, []byte("null")) {
			t.Errorf("%s: body contains null: %s", name, body)
		}
	}
}

func TestAnEmptyBatchMakesNoCall(t *testing.T) {
	for _, format := range formats {
		for _, kind := range []item.Kind{item.Instance, item.CustomResourceDefinition} {
			if made := calls(t, format, batch(kind, nil, nil)); len(made) != 0 {
				t.Errorf("%s: empty batch of %s has %d calls", format, kind, len(made))
			}
		}
	}
}

func TestByNameRefuses(t *testing.T) {
	if _, err := pipelineformat.ByName("Kafka"); err == nil || !strings.Contains(err.Error(), `"Kafka"`) {
		t.Errorf("ByName of an unknown format returned %v, want an error with its name", err)
	}
}
