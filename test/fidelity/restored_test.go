// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// namespace is that of all namespaced objects.
	namespace = "fidelity"
	// definitions is the resource of CustomResourceDefinitions.
	definitions = "customresourcedefinitions"
	// editors is how many objects are changed at the same time.
	editors = 4
	// unrequested is the file of a Service that keeps the address families that a user has requested, when no client requests them any
	// more. Only --recreate makes them requested again.
	unrequested = "core/v1/services/fidelity/headless-without-selector.yaml"
	// immutable is the file of a ConfigMap that becomes immutable. Only --recreate gets it back.
	immutable = "core/v1/configmaps/fidelity/empty.yaml"
)

// mirroredObject is an object that the test has created.
type mirroredObject struct {
	resource        schema.GroupVersionResource
	namespace, name string
	// path is that of its file, and content is what it has.
	path    string
	content map[string]any
}

// restoration gets the objects of a cluster back as they were at a commit.
type restoration struct {
	*testCluster
	client dynamic.Interface
	plugin devcluster.Kubectl
	// then is the commit, want are its files, and all is what they describe.
	then string
	want map[string]string
	all  []mirroredObject
}

// restored changes and deletes all objects, gets them back with the plugin, and expects the same files each time.
func (s *testCluster) restored(t *testing.T) {
	r := newRestoration(t, s)
	t.Run("Changed", func(t *testing.T) {
		r.edit(t, nil, (*editor).changeFields)
		r.changed(t, 0.8)
		r.restore(t)
		r.same(t)
		r.again(t)
	})
	t.Run("Removed", func(t *testing.T) {
		r.edit(t, nil, (*editor).removeFields)
		r.changed(t, 0.7)
		r.restore(t)
		r.unrequested(t)
		r.same(t)
	})
	t.Run("Exchanged", func(t *testing.T) {
		r.edit(t, isNoDefinition, func(e *editor, ctx context.Context) error { return e.exchangeFields(ctx, r.siblings(e.object)) })
		r.exchanged(t)
		r.same(t)
	})
	t.Run("Deleted", func(t *testing.T) {
		r.delete(t)
		r.run(t, "crd/gauges.fidelity.example.com", "gauges.fidelity.example.com/defaults", "gauges.fidelity.example.com/nulls",
			"gauges.fidelity.example.com/values.with.dots")
		r.restore(t)
		r.same(t)
		r.again(t)
	})
	t.Run("StoredVersion", r.storedVersion)
}

func newRestoration(t *testing.T, s *testCluster) *restoration {
	t.Helper()
	r := &restoration{testCluster: s, then: s.commit(t), plugin: s.plugin(t), want: files(t, filepath.Join(s.clone(t), plain))}
	r.client = mirrortest.ClientOf(t, s.Admin(), func(config *rest.Config) (dynamic.Interface, error) {
		config.WarningHandlerWithContext = rest.NoWarnings{}
		return dynamic.NewForConfig(config)
	})
	for _, path := range slices.Sorted(maps.Keys(r.want)) {
		if o := objectAt(t, path, r.want[path]); !o.isInstalled() {
			r.all = append(r.all, o)
		}
	}
	return r
}

// objectAt returns the object of a file.
func objectAt(t *testing.T, path, content string) mirroredObject {
	t.Helper()
	steps := strings.Split(path, "/")
	o := mirroredObject{path: path, content: parse(t, content)}
	o.resource = schema.GroupVersionResource{Group: steps[0], Version: steps[1], Resource: steps[2]}
	if o.resource.Group == "core" {
		o.resource.Group = ""
	}
	o.name, _ = fieldPath{"metadata", "name"}.get(o.content).(string)
	o.namespace, _ = fieldPath{"metadata", "namespace"}.get(o.content).(string)
	return o
}

// isInstalled reports whether an object was there before the test, or selects what is mirrored. Such objects stay as they are.
func (o *mirroredObject) isInstalled() bool {
	return o.resource.Group == "configbutler.ai" || strings.HasPrefix(o.name, "slipstream-") || o.resource.Resource == "namespaces" && o.name != namespace
}

func isDefinition(o *mirroredObject) bool   { return o.resource.Resource == definitions }
func isNoDefinition(o *mirroredObject) bool { return !isDefinition(o) }

func (r *restoration) of(o *mirroredObject) dynamic.ResourceInterface {
	if o.namespace == "" {
		return r.client.Resource(o.resource)
	}
	return r.client.Resource(o.resource).Namespace(o.namespace)
}

// each does something to the selected objects.
func (r *restoration) each(t *testing.T, selected func(*mirroredObject) bool, do func(context.Context, *mirroredObject) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(editors)
	for i := range r.all {
		if o := &r.all[i]; selected(o) {
			group.Go(func() error {
				if err := do(ctx, o); err != nil {
					return fmt.Errorf("%s: %w", o.path, err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// edit changes the selected objects, and nil selects all: the definitions last, because they validate the others.
func (r *restoration) edit(t *testing.T, selected func(*mirroredObject) bool, change func(*editor, context.Context) error) {
	t.Helper()
	write := func(ctx context.Context, o *mirroredObject) error {
		// A controller may write the object while the changes are tried.
		return retry.RetryOnConflict(wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 8}, func() error {
			e, err := newEditor(ctx, r.of(o), o)
			if err != nil {
				return err
			}
			if err := change(e, ctx); err != nil {
				return err
			}
			return e.write(ctx)
		})
	}
	r.each(t, isNoDefinition, write)
	r.mirrored(t)
	if selected == nil {
		r.each(t, isDefinition, write)
	}
}

// now returns the files as they are now.
func (r *restoration) now(t *testing.T) map[string]string {
	t.Helper()
	r.mirrored(t)
	return files(t, filepath.Join(r.clone(t), plain))
}

// changed expects that nearly all values of definitions have changed, and a share of those of other objects. It names the others.
func (r *restoration) changed(t *testing.T, share float64) {
	t.Helper()
	now := r.now(t)
	for name, group := range map[string]struct {
		selected func(*mirroredObject) bool
		share    float64
	}{"definitions": {isDefinition, 0.99}, "other objects": {isNoDefinition, share}} {
		var total, different int
		for i := range r.all {
			if o := &r.all[i]; group.selected(o) {
				values, kept := compareValues(o, parse(t, now[o.path]))
				total, different = total+values, different+values-len(kept)
				if len(kept) > 0 {
					t.Logf("%s keeps %s", o.path, strings.Join(kept, ", "))
				}
			}
		}
		t.Logf("%d of %d values of %s have changed", different, total, name)
		if float64(different) < group.share*float64(total) {
			t.Errorf("%d of %d values of %s have changed, want %.0f %%", different, total, name, 100*group.share)
		}
	}
}

// compareValues returns how many values an object had, and the paths of those that it has in another content.
func compareValues(o *mirroredObject, content map[string]any) (values int, kept []string) {
	walk(nil, o.content, func(at fieldPath, value any) {
		if !isLeaf(value) || isIdentity(at) || isFixed(o, at) {
			return
		}
		if values++; at.get(content) == value {
			kept = append(kept, at.String())
		}
	})
	return values, kept
}

// siblings returns the contents of the other objects of the type.
func (r *restoration) siblings(o *mirroredObject) (others []map[string]any) {
	for _, other := range r.all {
		if other.resource == o.resource && other.path != o.path {
			others = append(others, other.content)
		}
	}
	return others
}

// run restores what arguments select, and returns what the plugin prints.
func (r *restoration) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := r.plugin.Run(t.Context(), append(r.arguments(), arguments...)...)
	if err != nil {
		t.Errorf("%v: %v: %s", arguments, err, out)
	}
	return out
}

func (r *restoration) arguments() []string {
	return []string{"restore", "--to", r.then, "--destination", "mirror/" + plain, "--yes"}
}

// restore restores everything: definitions by their type, other cluster-scoped objects by their names, and the namespace.
func (r *restoration) restore(t *testing.T) (out string) {
	t.Helper()
	var clusterScoped []string
	for _, o := range r.all {
		if o.namespace == "" && isNoDefinition(&o) && o.resource.Resource != "namespaces" {
			clusterScoped = append(clusterScoped, o.resource.GroupResource().String()+"/"+o.name)
		}
	}
	return r.run(t, "crds") + r.run(t, clusterScoped...) + r.run(t, "--prune", "-n", namespace) + r.run(t, "namespaces")
}

// same expects the old files.
func (r *restoration) same(t *testing.T) {
	t.Helper()
	sameFiles(t, r.want, r.now(t))
}

// again restores everything again, which must write nothing.
func (r *restoration) again(t *testing.T) {
	t.Helper()
	before := r.commit(t)
	out := r.restore(t)
	for _, word := range []string{" created\n", " updated\n", " deleted\n"} {
		if strings.Contains(out, word) {
			t.Errorf("the second time, restore printed %s", out)
		}
	}
	r.still(t, before)
}

// exchanged restores what has the fields of other objects. What an update does not get back is named.
func (r *restoration) exchanged(t *testing.T) {
	t.Helper()
	r.refused(t, "--recreate configmaps/empty deletes and creates it", "-n", namespace)
	r.run(t, "configmap/empty", "-n", namespace, "--recreate", "configmap/empty")
	r.restore(t)
}

// refused restores what arguments select, and expects that the plugin leaves something as it is and says why.
func (r *restoration) refused(t *testing.T, why string, arguments ...string) {
	t.Helper()
	out, err := r.plugin.Run(t.Context(), append(r.arguments(), arguments...)...)
	if err == nil || !strings.Contains(out, why) {
		t.Errorf("%v: %v, without %q: %s", arguments, err, why, out)
	}
}

// unrequested recreates the object that an update does not get back exactly.
func (r *restoration) unrequested(t *testing.T) {
	t.Helper()
	got := r.now(t)[unrequested]
	const families = "  ipFamilies:\n  - IPv4\n  - IPv6\n"
	if want := strings.Replace(r.want[unrequested], families, "", 1); got != want {
		t.Errorf("%s is\n%s\nwant\n%s", unrequested, got, want)
	}
	const service = "service/headless-without-selector"
	r.run(t, service, "-n", namespace, "--recreate", service)
}

// delete deletes all objects. Finalizers would keep them, as no controller removes these.
func (r *restoration) delete(t *testing.T) {
	t.Helper()
	r.each(t, isNoDefinition, func(ctx context.Context, o *mirroredObject) error {
		_, err := r.of(o).Patch(ctx, o.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	})
	// The namespace comes last: it is not deleted while the service of an APIService does not respond.
	for _, namespaces := range []bool{false, true} {
		r.each(t, func(o *mirroredObject) bool {
			return o.namespace == "" && (o.resource.Resource == "namespaces") == namespaces
		},
			func(ctx context.Context, o *mirroredObject) error {
				err := r.of(o).Delete(ctx, o.name, metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) { // It was deleted with its definition.
					return nil
				}
				return err
			})
	}
	r.kubectl(t, "wait", "namespace/"+namespace, "--for=delete", "--timeout=180s")
	now := r.now(t)
	for _, o := range r.all {
		if _, exists := now[o.path]; exists {
			t.Errorf("%s still exists", o.path)
		}
	}
}

// storedVersion expects that a version in which objects were stored is named as what an update does not remove.
func (r *restoration) storedVersion(t *testing.T) {
	const name = "gauges.fidelity.example.com"
	r.kubectl(t, "patch", "crd", name, "--type=json", "-p", `[
		{"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/-"}, {"op": "replace", "path": "/spec/versions/2/name", "value": "v2"},
		{"op": "replace", "path": "/spec/versions/0/storage", "value": false}]`)
	r.mirrored(t)
	r.refused(t, "refused: status.storedVersions[1]: ", "crd/"+name)
}
