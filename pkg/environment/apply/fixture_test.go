// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

var twin = apply.Target{Namespace: "twin"}

// newCluster returns a cluster with the namespace of twin and objects.
func newCluster(t testing.TB, objects ...*unstructured.Unstructured) *environmenttest.Cluster {
	t.Helper()
	c := environmenttest.NewCluster(t)
	c.Put(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: twin}}"))
	for _, o := range objects {
		c.Put(o)
	}
	return c
}

// put puts an object, and returns it as it is stored.
func put(c *environmenttest.Cluster, o *unstructured.Unstructured) *unstructured.Unstructured {
	c.Put(o)
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return c.Live(resource.Resource, o.GetNamespace(), o.GetName())
}

func status(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) *metav1.Status {
	status := environmenttest.Status(code, reason, message)
	status.Details = &metav1.StatusDetails{Causes: causes}
	return status
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return environmenttest.Object(t, text)
}

func configMap(t testing.TB, name, value string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: twin}, data: {key: %q}}", name, value))
}

func applierOf(c *environmenttest.Cluster) *apply.Applier {
	c.Helper()
	return &apply.Applier{
		Client: c.Client(), Mapper: c.Mapper(), Manager: "slipstream", Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Concurrency: 4,
	}
}

// run executes steps and expects no error.
func run(t *testing.T, c *environmenttest.Cluster, steps ...apply.Step) apply.Report {
	t.Helper()
	report, err := applierOf(c).Apply(t.Context(), twin, steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// lines returns the refusals and conflicts of a report.
func lines(report apply.Report) []string {
	out := []string{}
	for _, refusal := range report.Refusals {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s: %s", refusal.Object, refusal.Field, refusal.Message)))
	}
	for _, conflict := range report.Conflicts {
		out = append(out, conflict.Message)
	}
	return out
}
