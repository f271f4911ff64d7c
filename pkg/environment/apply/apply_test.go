// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/environment/apply"
)

func deployment(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	return object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: twin}, "+
		"spec: {template: {spec: {containers: [{name: web}]}}}}")
}

func creation(objects ...*unstructured.Unstructured) []apply.Step {
	var steps []apply.Step
	for _, o := range objects {
		steps = append(steps, apply.Step{Verb: apply.Create, Apply: o})
	}
	return steps
}

func update(live, next *unstructured.Unstructured) apply.Step {
	return apply.Step{Verb: apply.Update, Live: live, Apply: next}
}

func deletion(live *unstructured.Unstructured) apply.Step {
	return apply.Step{Verb: apply.Delete, Live: live}
}

func TestDryRunsThenAppliesInOrder(t *testing.T) {
	c := newCluster(t, configMap(t, "old", "1"), configMap(t, "settings", "1"))
	steps := append(creation(configMap(t, "new", "1")), update(c.Live("configmaps", "twin", "settings"), configMap(t, "settings", "2")))
	steps = append(steps, creation(deployment(t))...)
	steps = append(steps, deletion(c.Live("configmaps", "twin", "old")))
	var progress []string
	report, err := applierOf(c).Apply(t.Context(), twin, steps, func(done, total int) {
		progress = append(progress, fmt.Sprintf("%d/%d", done, total))
	})
	if err != nil || !report.IsClean() {
		t.Fatalf("%v %q", err, lines(report))
	}
	if diff := cmp.Diff([]string{"1/4", "2/4", "3/4", "4/4"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	requests := c.TakeRequests()
	slices.Sort(requests[1:6])
	slices.Sort(requests[7:9])
	want := []string{
		"GET namespaces/twin", "dry DELETE twin/configmaps/old", "dry PATCH twin/configmaps/new", "dry PATCH twin/configmaps/settings",
		"dry PATCH twin/deployments/web", "dry POST twin/pods", "GET twin/resourcequotas",
		"PATCH twin/configmaps/new", "PATCH twin/configmaps/settings", "PATCH twin/deployments/web", "DELETE twin/configmaps/old",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for i, written := range report.Written {
		if written.Step != i || (written.Object == nil) != (steps[i].Verb == apply.Delete) {
			t.Errorf("written object %d: step %d, %v", i, written.Step, written.Object)
		}
	}
}

func TestWritePreconditions(t *testing.T) {
	serviceOf := func(uid types.UID, value string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := service(t, value)
		o.SetUID(uid)
		for _, change := range changes {
			change(o)
		}
		return o
	}
	for name, tt := range map[string]struct {
		// now is the object after planning; nil means that it was deleted.
		now    *unstructured.Unstructured
		create bool
		want   string
	}{
		"a status": {now: serviceOf("first", "1", func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}
			o.SetAnnotations(map[string]string{"balancer": "ready"})
			o.SetManagedFields([]metav1.ManagedFieldsEntry{fieldsOf("controller", "status", `{"f:metadata":{"f:annotations":{"f:balancer":{}}}}`)})
		})},
		"content": {now: serviceOf("first", "3"), want: "Service settings has been changed meanwhile"},
		"an owner": {now: serviceOf("first", "1", func(o *unstructured.Unstructured) {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{fieldsOf("alice", "", `{"f:spec":{"f:externalName":{}}}`)})
		}), want: "Service settings has been changed meanwhile"},
		"another one": {now: serviceOf("second", "1"), want: "Service settings has been replaced by another one of its name meanwhile"},
		"one that goes": {now: serviceOf("first", "1", func(o *unstructured.Unstructured) {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		}), want: "Service settings is being deleted"},
		"none":     {want: "Service settings has been deleted meanwhile"},
		"a create": {now: serviceOf("second", "1"), create: true, want: "Service settings was created by another client meanwhile"},
	} {
		for _, when := range []string{"dry PATCH twin/services/settings", "PATCH twin/services/settings"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				c, step := newCluster(t), apply.Step{Verb: apply.Create, Apply: service(t, "2")}
				if !tt.create {
					step = update(put(c, serviceOf("first", "1")), service(t, "2"))
				}
				c.Answer(func(request string) *metav1.Status {
					if request == when {
						c.Drop("services", "twin", "settings")
						if tt.now != nil {
							c.Put(tt.now)
						}
						c.Answer(nil)
					}
					return nil
				})
				report := run(t, c, step)
				if tt.want != "" {
					if diff := cmp.Diff([]string{tt.want}, lines(report)); diff != "" || len(report.Written) > 0 {
						t.Errorf("%v (-want +got):\n%s", report.Written, diff)
					}
					return
				}
				if !report.IsClean() || len(report.Written) != 1 {
					t.Errorf("%q, written %v", lines(report), report.Written)
				}
			})
		}
	}
}

// service returns a Service, which has a status.
func service(t testing.TB, value string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: settings, namespace: twin}, "+
		"spec: {externalName: %q}}", value))
}

func fieldsOf(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func configMapOf(t testing.TB, uid, value string) *unstructured.Unstructured {
	o := configMap(t, "settings", value)
	o.SetUID("first")
	if uid == "second" {
		o.SetUID("second")
	}
	return o
}

func TestDeletesAreIdempotent(t *testing.T) {
	c := newCluster(t)
	gone := configMapOf(t, "first", "1")
	going := configMapOf(t, "second", "1")
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	if report := run(t, c, deletion(gone), deletion(going)); len(report.Written) != 2 {
		t.Errorf("written %v, %q", report.Written, lines(report))
	}
}

func TestChangedObjectsAreNotDeleted(t *testing.T) {
	for _, when := range []string{"dry DELETE twin/configmaps/settings", "DELETE twin/configmaps/settings"} {
		t.Run(when, func(t *testing.T) {
			c := newCluster(t)
			live := put(c, configMapOf(t, "first", "1"))
			c.Answer(func(request string) *metav1.Status {
				if request == when {
					c.Put(configMapOf(t, "first", "2"))
				}
				return nil
			})
			report := run(t, c, deletion(live))
			if diff := cmp.Diff([]string{"ConfigMap settings has been changed meanwhile"}, lines(report)); diff != "" || len(report.Written) > 0 {
				t.Errorf("%v (-want +got):\n%s", report.Written, diff)
			}
		})
	}
}

func TestRetriesAreLimited(t *testing.T) {
	c := newCluster(t)
	live := put(c, configMapOf(t, "first", "1"))
	c.Answer(func(request string) *metav1.Status {
		if strings.Contains(request, "PATCH") {
			c.Put(live)
		}
		return nil
	})
	report := run(t, c, update(live, configMap(t, "settings", "2")))
	if diff := cmp.Diff([]string{"ConfigMap settings is being changed all the time"}, lines(report)); diff != "" {
		t.Error(diff)
	}
}

func TestStopsAfterError(t *testing.T) {
	trouble := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "down")
	for when, want := range map[string]int{"dry PATCH twin/configmaps/b": 0, "PATCH twin/configmaps/b": 1, "PATCH twin/deployments/web": 2} {
		t.Run(when, func(t *testing.T) {
			c := newCluster(t)
			c.Answer(func(request string) *metav1.Status {
				if request == when {
					return trouble
				}
				return nil
			})
			applier := applierOf(c)
			applier.Concurrency = 1
			report, err := applier.Apply(t.Context(), twin, creation(configMap(t, "a", "1"), configMap(t, "b", "1"), deployment(t)), nil)
			if !apierrors.IsServiceUnavailable(err) || len(report.Written) != want || !report.IsClean() {
				t.Errorf("%v, written %v, %q", err, report.Written, lines(report))
			}
		})
	}
}

func TestCancelledRunsReportWrites(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	report, err := applierOf(c).Apply(ctx, twin, creation(configMap(t, "a", "1"), deployment(t)), func(int, int) { cancel() })
	if !errors.Is(err, context.Canceled) || len(report.Written) != 1 || report.Written[0].Step != 0 {
		t.Errorf("%v, written %v", err, report.Written)
	}
}

func TestImmutableObjectsAreReplaced(t *testing.T) {
	c := newCluster(t)
	before := configMapOf(t, "first", "1")
	before.Object["immutable"] = true
	live := put(c, before)
	c.Answer(func(request string) *metav1.Status {
		if c.Live("configmaps", "twin", "settings") != nil && strings.HasSuffix(request, "PATCH twin/configmaps/settings") {
			return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "it is immutable")
		}
		return nil
	})
	report := run(t, c, update(live, configMap(t, "settings", "2")))
	if !report.IsClean() || len(report.Written) != 1 {
		t.Fatalf("%q", lines(report))
	}
	want := []string{
		"GET namespaces/twin", "dry PATCH twin/configmaps/settings", "dry DELETE twin/configmaps/settings", "dry POST twin/configmaps",
		"DELETE twin/configmaps/settings", "PATCH twin/configmaps/settings",
	}
	if diff := cmp.Diff(want, c.TakeRequests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestStepsArePrintedWithoutContent(t *testing.T) {
	step := update(secret(t), secret(t))
	got := fmt.Sprintf("%v %+v %#v", step, step, []apply.Step{step})
	if strings.Contains(got, hidden) || !strings.Contains(got, "update Secret settings") {
		t.Errorf("printed %s", got)
	}
}

func TestInvalidSteps(t *testing.T) {
	settings, elsewhere := configMap(t, "a", "1"), configMap(t, "settings", "1")
	elsewhere.SetNamespace("production")
	unknown := object(t, "{apiVersion: example.com/v1, kind: Unknown, metadata: {namespace: twin}}")
	for _, tt := range []struct {
		step apply.Step
		want string
	}{
		{apply.Step{Verb: "leave", Apply: settings}, `step has the verb "leave": it must be create, update or delete`},
		{apply.Step{Verb: apply.Delete}, "step to delete an object lacks the object, or has one too many"},
		{apply.Step{Verb: apply.Update, Apply: settings}, "step to update an object lacks the object, or has one too many"},
		{apply.Step{Verb: apply.Create, Live: settings}, "step to create an object lacks the object, or has one too many"},
		{apply.Step{Verb: apply.Create, Apply: elsewhere},
			`step to create ConfigMap settings: it is in namespace "production", and the target is "twin"`},
		{apply.Step{Verb: apply.Update, Live: settings, Apply: settings, Removal: []byte("[]")},
			"step to update ConfigMap a removes fields, and does not say what becomes of it"},
		{apply.Step{Verb: apply.Create, Apply: unknown},
			`find the resource of example.com/v1, Kind=Unknown: no matches for kind "Unknown" in version "example.com/v1"`},
	} {
		c := newCluster(t)
		if _, err := applierOf(c).Apply(t.Context(), twin, []apply.Step{tt.step}, nil); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if requests := c.TakeRequests(); len(requests) > 0 {
			t.Errorf("requests: %q", requests)
		}
	}
}
