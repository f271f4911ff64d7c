// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/test/devcluster"
)

// Objects changes and reads objects as a user, for what tests only prepare or wait for. What a test is about is a command of kubectl.
type Objects struct {
	// Try is for requests that can fail. The methods fail the test instead.
	Try *devcluster.Objects
}

// ObjectsOf returns the objects as a user sees them.
func ObjectsOf(t testing.TB, user devcluster.Kubeconfig) *Objects {
	t.Helper()
	objects, err := user.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return &Objects{Try: objects}
}

// Apply applies manifests with server-side apply.
func (o *Objects) Apply(t testing.TB, manifests string) {
	t.Helper()
	o.ApplyIn(t, "", manifests)
}

// ApplyIn applies manifests in a namespace.
func (o *Objects) ApplyIn(t testing.TB, namespace, manifests string) {
	t.Helper()
	if err := o.Try.Apply(t.Context(), namespace, manifests); err != nil {
		t.Fatal(err)
	}
}

// Patch changes an object with a JSON merge patch.
func (o *Objects) Patch(t testing.TB, namespace, object, patch string) {
	t.Helper()
	if err := o.Try.Patch(t.Context(), namespace, object, patch); err != nil {
		t.Fatalf("patch %s: %v", object, err)
	}
}

// Field returns what a JSONPath template selects in an object, empty if it selects nothing.
func (o *Objects) Field(t testing.TB, namespace, object, template string) string {
	t.Helper()
	text, err := o.Try.Field(t.Context(), namespace, object, template)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Delete deletes objects, which must exist, and waits until they are removed.
func (o *Objects) Delete(t testing.TB, namespace string, objects ...string) {
	t.Helper()
	o.remove(t, false, namespace, objects)
}

// DeleteIfExist deletes those of the objects that exist, and waits until they are removed. It can be used after the test, too.
func (o *Objects) DeleteIfExist(t testing.TB, namespace string, objects ...string) {
	t.Helper()
	o.remove(t, true, namespace, objects)
}

func (o *Objects) remove(t testing.TB, mayLack bool, namespace string, objects []string) {
	t.Helper()
	deleted := map[string]types.UID{}
	for _, object := range objects {
		uid, err := o.Try.Delete(context.WithoutCancel(t.Context()), namespace, object)
		switch {
		case err == nil:
			deleted[object] = uid
		case !mayLack || !apierrors.IsNotFound(err):
			t.Fatalf("delete %s: %v", object, err)
		}
	}
	for object, uid := range deleted {
		Eventually(t, object+" is removed", func(ctx context.Context) error {
			found, err := o.Try.Get(ctx, namespace, object)
			switch {
			case apierrors.IsNotFound(err) || err == nil && found.GetUID() != uid:
				return nil
			case err != nil:
				return err
			}
			return fmt.Errorf("finalizers %q", found.GetFinalizers())
		})
	}
}

// Ready waits for the condition Ready of objects.
func (o *Objects) Ready(t testing.TB, namespace string, objects ...string) {
	t.Helper()
	o.HaveCondition(t, namespace, "Ready", objects...)
}

// HaveCondition waits until a condition of objects is true.
func (o *Objects) HaveCondition(t testing.TB, namespace, condition string, objects ...string) {
	t.Helper()
	for _, object := range objects {
		Eventually(t, fmt.Sprintf("%s of %s", condition, object), func(ctx context.Context) error {
			found, err := o.Try.Get(ctx, namespace, object)
			if err != nil {
				return err
			}
			return isTrue(found, condition)
		})
	}
}

// HasField waits until a JSONPath template selects a text in an object.
func (o *Objects) HasField(t testing.TB, namespace, object, template, want string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s of %s is %q", template, object, want), func(ctx context.Context) error {
		text, err := o.Try.Field(ctx, namespace, object, template)
		if err == nil && text != want {
			err = fmt.Errorf("%s = %q", template, text)
		}
		return err
	})
}

// Condition waits until a condition of an object has a reason, and returns its message.
func (o *Objects) Condition(t testing.TB, namespace, object, kind, reason string) (message string) {
	t.Helper()
	template := fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.reason}: {.message}{end}`, kind)
	Eventually(t, fmt.Sprintf("%s of %s has the reason %s", kind, object, reason), func(ctx context.Context) error {
		text, err := o.Try.Field(ctx, namespace, object, template)
		if err != nil {
			return err
		}
		var has bool
		if message, has = strings.CutPrefix(text, reason+": "); !has {
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
	return message
}

// isTrue returns an error unless a condition of an object is true, for the current generation as far as the status tells one.
func isTrue(object *unstructured.Unstructured, name string) error {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] != name {
			continue
		}
		observed, told := condition["observedGeneration"].(int64)
		if !told {
			observed, told = status["observedGeneration"].(int64)
		}
		if condition["status"] == "True" && (!told || observed >= object.GetGeneration()) {
			return nil
		}
	}
	return fmt.Errorf("generation %d: status %v", object.GetGeneration(), status)
}

// ConfigMap applies a ConfigMap with data such as a: '1'.
func (o *Objects) ConfigMap(t testing.TB, namespace, name, data string) {
	t.Helper()
	o.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {%s}}", name, namespace, data))
}

// CreateNamespace creates a namespace.
func (o *Objects) CreateNamespace(t testing.TB, name string) {
	t.Helper()
	o.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
}
