// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var keptManifest = regexp.MustCompile(`Its manifest is in (\S+): kubectl create -f (\S+) creates it`)

// TestRecreateFails keeps the manifest of an object that was deleted and not created.
func TestRecreateFails(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	for name, test := range map[string]struct {
		// refusal is why the creation is refused, nil if the command ends between deletion and creation.
		refusal *apierrors.StatusError
		code    int
		want    string
	}{
		"webhook": {apierrors.NewForbidden(configMaps, "note", errors.New("denied")), 3, "not everything is written: deleted, and not created: ConfigMap/note"},
		"invalid": {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "note", nil), 3, "not everything is written: deleted, and not created: ConfigMap/note"},
		"another": {apierrors.NewAlreadyExists(configMaps, "note"), 3, "not everything is written: deleted, and not created: ConfigMap/note"},
		"a conflict of a webhook": {
			apierrors.NewConflict(configMaps, "note", errors.New("webhook")), 3, "not everything is written: deleted, and not created: ConfigMap/note",
		},
		"interrupted": {nil, 130, "ended: context canceled; 0 of 1 objects are written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			c := shop(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.refuseWrite = func(method, _ string) *apierrors.StatusError {
				if method == http.MethodDelete && test.refusal == nil {
					cancel()
				}
				if method == http.MethodPost {
					return test.refusal
				}
				return nil
			}
			out, notes, code := c.callWith(ctx, "restore", "cm/note", "--to", shaOf(2), "--yes", "--recreate", "cm/note")
			kept := keptManifest.FindStringSubmatch(notes)
			if code != test.code || !strings.Contains(notes, test.want) || strings.Contains(notes, "left as") || kept == nil || kept[1] != kept[2] {
				t.Fatalf("exit code %d: %s%s", code, out, notes)
			}
			info, err := os.Stat(kept[1])
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info, err)
			}
			content, err := os.ReadFile(kept[1])
			if err != nil || !strings.Contains(string(content), "color: red\n") || !strings.Contains(string(content), "kind: ConfigMap\n") {
				t.Errorf("%v: %s", err, content)
			}
		})
	}
}

// TestRecreateWaitsForQuota creates an object again when its quota is free.
func TestRecreateWaitsForQuota(t *testing.T) {
	c := shop(t)
	refused := false
	c.refuseWrite = func(method, _ string) *apierrors.StatusError {
		if method != http.MethodPost || refused {
			return nil
		}
		refused = true
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "note", errors.New("exceeded quota: small"))
	}
	out, notes, code := c.call("restore", "cm/note", "--to", shaOf(2), "--yes", "--recreate", "cm/note")
	if code != 0 || !refused || c.data("configmaps/note")["color"] != "red" {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

// TestBeingDeleted refuses to write objects that are being deleted, and does not take them for existing ones.
func TestBeingDeleted(t *testing.T) {
	for _, content := range []map[string]string{{"color": "red", "size": "1"}, {"color": "green"}} {
		c := shop(t)
		c.put("note", content)
		end := metav1.NewTime(time.Date(2026, 7, 3, 9, 0, 0, 0, time.UTC))
		object := c.objects["configmaps/note"]
		object.SetDeletionTimestamp(&end)
		object.SetFinalizers([]string{"example.com/wait"})
		before := c.version
		const want = "refused: it is being deleted and waits for its finalizers (example.com/wait); run the command again when it is deleted"
		for _, args := range [][]string{{"--yes"}, {"--dry-run=client"}} {
			out, notes, code := c.call(append([]string{"restore", "cm/note", "--to", shaOf(2)}, args...)...)
			if code != 3 || c.version != before || !strings.Contains(out, want) || !strings.Contains(notes, "left as they are: ConfigMap/note") {
				t.Errorf("%v, %s: exit code %d: %s%s", content, args, code, out, notes)
			}
		}
	}
}

// TestUndoOfDeletionInProgress does not take an object that is being deleted for one that exists again.
func TestUndoOfDeletionInProgress(t *testing.T) {
	c := shop(t)
	object := c.objects["configmaps/note"]
	c.drop("configmaps", "note")
	deletion := c.changeName(len(c.states) - 1)
	end := metav1.NewTime(time.Date(2026, 7, 3, 9, 0, 0, 0, time.UTC))
	object.SetDeletionTimestamp(&end)
	c.objects["configmaps/note"] = object
	out, notes, code := c.call("undo", deletion, "--yes")
	if code != 3 || !strings.Contains(out, "refused: it is being deleted; run") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

// TestNamespaceBeingDeleted restores nothing into a namespace that is being deleted.
func TestNamespaceBeingDeleted(t *testing.T) {
	c := shop(t)
	end := metav1.NewTime(time.Date(2026, 7, 3, 9, 0, 0, 0, time.UTC))
	c.objects["namespaces/shop"].SetDeletionTimestamp(&end)
	out, notes, code := c.call("restore", "--to", shaOf(2), "--yes")
	if code != 2 || !strings.Contains(notes, "namespace shop is being deleted: run the command again when it is deleted") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}

// TestConsequences says what else is deleted with an object, and does not recreate one that others are deleted with.
func TestConsequences(t *testing.T) {
	c := shop(t)
	c.store("persistentvolumeclaims", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "data", "namespace": "shop"},
	}}, nil)
	for change, want := range map[string]string{
		c.changeName(1): "- Namespace/shop\n    everything in the namespace is deleted with it, also what is not mirrored\n1 to delete\n",
		c.changeName(len(c.states) - 1): "- PersistentVolumeClaim/data\n    its data is deleted with it, unless its volume has the reclaim policy Retain\n" +
			"1 to delete\n",
	} {
		if out, notes, code := c.call("undo", change, "--dry-run"); code != 0 || out != want {
			t.Errorf("exit code %d: %s%s", code, out, notes)
		}
	}
	c.objects["namespaces/shop"].SetLabels(map[string]string{"a": "b"})
	before := c.version
	args := []string{"restore", "namespace/shop", "--to", shaOf(2), "--destination", "teams/main", "--yes"}
	if _, notes, code := c.call(append(args, "--recreate", "namespace/shop")...); code != 2 || c.version != before ||
		!strings.Contains(notes, "--recreate is namespaces/shop: everything in the namespace is deleted with it, also what is not mirrored, and would not "+
			"come back; leave out --recreate") {
		t.Errorf("exit code %d: %s", code, notes)
	}
	c.validate = func(object *unstructured.Unstructured) *apierrors.StatusError {
		return apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), nil)
	}
	if out, notes, code := c.call(args...); code != 3 || strings.Contains(out, "--recreate") || !strings.Contains(out, "refused: ") {
		t.Errorf("exit code %d: %s%s", code, out, notes)
	}
}
