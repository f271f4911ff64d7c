// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// copied are the golden copies of a source namespace, in the order in which they are written.
const copied = "../../../pkg/kube/objectcopy/testdata/twin/*.yaml"

var order = []string{
	"ServiceAccount", "ConfigMap", "Secret", "Service", "NetworkPolicy", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "CronJob",
	"Job", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "Gateway", "HTTPRoute", "GRPCRoute", "ReferenceGrant",
}

// copies returns the golden copies, after installing the types that they need.
func (s *fixture) copies() []*unstructured.Unstructured {
	s.Helper()
	people.Admin(s, cluster).InstallGatewayAPI(s)
	files, err := filepath.Glob(copied)
	if err != nil {
		s.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		if !strings.HasPrefix(string(content), "# omitted") {
			objects = append(objects, s.object(string(content)))
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(slices.Index(order, a.GetKind()), slices.Index(order, b.GetKind()))
	})
	if len(objects) < len(order) {
		s.Fatalf("%d copies, want more", len(objects))
	}
	return objects
}

func TestCopies(t *testing.T) {
	s := newFixture(t, "shop-twin")
	namespace := s.object("{apiVersion: v1, kind: Namespace, metadata: {name: TARGET, labels: {made: here}}}")
	target := apply.Target{Namespace: s.namespace, Creation: namespace}
	objects := s.copies()
	var steps []apply.Step
	for _, o := range objects {
		steps = append(steps, create(o))
	}
	report, err := s.applier.Check(t.Context(), target, steps)
	if err != nil || !report.IsClean() || !report.Unchecked || s.live(target.Creation) != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	done := 0
	report, err = s.applier.Apply(t.Context(), target, steps, func(now, total int) {
		if done++; now != done || total != len(steps) {
			t.Errorf("%d of %d after %d", now, total, done)
		}
	})
	if err != nil || !report.IsClean() || !report.NamespaceCreated || len(report.Written) != len(steps) || done != len(steps) {
		t.Fatalf("%v: %d of %d written, %q", err, len(report.Written), len(steps), lines(report))
	}
	for i, o := range objects {
		checkHasAll(t, o.GetKind()+" "+o.GetName(), o.Object, report.Written[i].Object.Object)
		checkManager(t, report.Written[i].Object)
	}
	if got := text(s.live(s.object("{apiVersion: v1, kind: Service, metadata: {name: db}}")), "spec", "clusterIP"); got != "None" {
		t.Errorf("cluster IP of the headless Service = %s", got)
	}
	t.Run("controllers create Pods", func(t *testing.T) {
		s.eventually("a pod", func(ctx context.Context) (bool, error) {
			ofWeb := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=web"}
			pods, err := s.resource(s.object("{apiVersion: v1, kind: Pod}")).List(ctx, ofWeb)
			return err == nil && len(pods.Items) > 0, err
		})
	})
	t.Run("second run changes nothing", func(t *testing.T) { again(t, s, objects) })
	t.Run("create of existing objects fails", func(t *testing.T) {
		generations := map[string]string{}
		for _, o := range objects {
			generations[o.GetKind()+o.GetName()] = written(s.live(o))
		}
		if got := s.expectRefused(steps...); len(got) != len(steps) {
			t.Errorf("%d conflicts: %q", len(got), got)
		}
		for _, o := range objects {
			if now := written(s.live(o)); now != generations[o.GetKind()+o.GetName()] {
				t.Errorf("%s %s was written", o.GetKind(), o.GetName())
			}
		}
	})
	t.Run("deletion", func(t *testing.T) {
		var deletions []apply.Step
		for _, o := range slices.Backward(objects) {
			deletions = append(deletions, remove(s.live(o)))
		}
		s.mustApply(deletions...)
		s.eventually("the objects to be deleted", func(context.Context) (bool, error) {
			return !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return s.live(o) != nil }), nil
		})
	})
}

// again applies the same objects until no controller changes them during a run.
func again(t *testing.T, s *fixture, objects []*unstructured.Unstructured) {
	s.eventually("a run that changes nothing", func(context.Context) (bool, error) {
		var steps []apply.Step
		for _, o := range objects {
			steps = append(steps, update(s.live(o), o))
		}
		report := s.apply(steps...)
		if !report.IsClean() {
			t.Logf("conflict with a controller: %q", lines(report))
			return false, nil
		}
		quiet := true
		for i, after := range report.Written {
			if written(steps[i].Live) != written(after.Object) {
				t.Fatalf("%s %s was changed", after.Object.GetKind(), after.Object.GetName())
			}
			quiet = quiet && steps[i].Live.GetResourceVersion() == after.Object.GetResourceVersion()
		}
		return quiet, nil
	})
}

// written identifies the last write of our field manager.
func written(o *unstructured.Unstructured) string {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == manager {
			return string(o.GetUID()) + entry.Time.String() + entry.FieldsV1.GetRawString()
		}
	}
	return ""
}

func checkManager(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "status" {
			continue // Written by the controllers of the cluster.
		}
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("%s %s has fields of %s, by %s", o.GetKind(), o.GetName(), entry.Manager, entry.Operation)
		}
	}
}

// checkHasAll expects got to contain want; got may have more fields.
func checkHasAll(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for name, value := range want {
			checkHasAll(t, path+"."+name, value, fields[name])
		}
	case []any:
		fields, _ := got.([]any)
		if len(fields) != len(want) {
			t.Errorf("%s has %d items, want %d", path, len(fields), len(want))
			return
		}
		for i, value := range want {
			checkHasAll(t, path, value, fields[i])
		}
	default:
		if want != got {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
}
