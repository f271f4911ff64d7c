// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// writes is the number of writes of each workload in a run.
const randomWrites = 300

// TestOnlyContentChangesTheHash makes random writes to workloads, one after the other, of which it is known whether they change the
// content.
func TestOnlyContentChangesTheHash(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, name := range []string{"deployment", "statefulset", "daemonset", "replicaset", "job", "job-manual", "cronjob"} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			rules := byDefault(t)
			object := live(t, name)
			before := captured(t, object, rules)
			for range randomWrites {
				content := random.IntN(2) == 0
				write := writeAside
				if content {
					write = writeContent
				}
				what := write(t, random, object)
				after := captured(t, object, rules)
				if changed := after.Hash != before.Hash; changed != content {
					t.Fatalf("%s: is content: %v, hash changed: %v\n%s", what, content, changed, cmp.Diff(before.Object, after.Object))
				}
				before = after
			}
		})
	}
}

// writeAside changes a field that is not content of a workload. It returns a description.
func writeAside(t testing.TB, random *rand.Rand, object *unstructured.Unstructured) string {
	t.Helper()
	annotations := []string{
		"deployment.kubernetes.io/revision", "deployment.kubernetes.io/desired-replicas", "deprecated.daemonset.template.generation",
		"kubectl.kubernetes.io/last-applied-configuration", "argocd.argoproj.io/tracking-id", "control-plane.alpha.kubernetes.io/leader",
	}
	labels := []string{"argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name", "applyset.kubernetes.io/part-of"}
	texts := []string{"resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "selfLink"}
	value := fmt.Sprint(random.Uint32())
	var path []string
	switch random.IntN(8) {
	case 0:
		path = []string{"metadata", pick(random, texts)}
	case 1:
		path = []string{"metadata", "annotations", pick(random, annotations)}
	case 2:
		path = []string{"metadata", "labels", pick(random, labels)}
	case 3:
		path = []string{"status", pick(random, []string{"a", "b", "c"})}
	case 4:
		set(t, object, random.Int64(), "metadata", "generation")
		return "generation"
	case 5:
		set(t, object, random.Int64N(100), "spec", "replicas")
		return "replicas"
	case 6:
		entry := fields{"manager": value, "operation": "Update", "fieldsV1": fields{"f:spec": fields{}}}
		set(t, object, []any{entry}, "metadata", "managedFields")
		return "managedFields"
	default:
		set(t, object, []any{fields{"apiVersion": "v1", "kind": "Thing", "name": "a", "uid": value}}, "metadata", "ownerReferences")
		return "ownerReferences"
	}
	if random.IntN(4) == 0 {
		unstructured.RemoveNestedField(object.Object, path...)
		return "removal of " + strings.Join(path, "/")
	}
	set(t, object, value, path...)
	return strings.Join(path, "/")
}

// writeContent changes, removes or adds content. It returns a description.
func writeContent(t testing.TB, random *rand.Rand, object *unstructured.Unstructured) string {
	t.Helper()
	value := fmt.Sprint("v", random.Uint64())
	if random.IntN(4) == 0 {
		key := fmt.Sprintf("example.com/k%d", random.IntN(20))
		in := pick(random, []string{"labels", "annotations"})
		set(t, object, value, "metadata", in, key)
		return in + " " + key
	}
	var places []place
	spec := object.Object["spec"].(fields)
	collect(&places, "/spec", spec)
	if len(places) == 0 {
		spec["x"+value] = value
		return "the first field of the spec"
	}
	at := pick(random, places)
	switch was := at.in[at.key].(type) {
	case string:
		at.in[at.key] = value
	case bool:
		at.in[at.key] = !was
	case int64:
		at.in[at.key] = was + 1 + random.Int64N(5)
	default:
		// Null, maps and lists are changed by adding content to them.
		at.in["x"+value] = value
	}
	if random.IntN(10) == 0 {
		delete(at.in, at.key)
	}
	return at.path
}

// place is the position of a value.
type place struct {
	path string
	in   fields
	key  string
}

// collect adds the places of a map that have content of a workload.
func collect(places *[]place, path string, in fields) {
	for key, value := range in {
		below := path + "/" + key
		// Fields that are ignored by default, that the API server generates for a Job, and that it writes into templates.
		if below == "/spec/replicas" || key == "creationTimestamp" || key == "status" ||
			strings.HasSuffix(key, "controller-uid") || strings.HasSuffix(key, "job-name") {
			continue
		}
		*places = append(*places, place{below, in, key})
		switch value := value.(type) {
		case fields:
			collect(places, below, value)
		case []any:
			for i, item := range value {
				if item, ok := item.(fields); ok {
					collect(places, fmt.Sprintf("%s/%d", below, i), item)
				}
			}
		}
	}
	slices.SortFunc(*places, func(a, b place) int { return strings.Compare(a.path, b.path) })
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
