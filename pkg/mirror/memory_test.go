// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/component-base/metrics/testutil"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// remembering makes the mirror record Changes and remember files in a folder.
func remembering(dir string) func(*fixture) {
	return func(s *fixture) {
		s.recorded = true
		s.openFiles = func() *blobcache.Cache {
			cache, err := blobcache.Open(s.t.Context(), blobcache.Config{Dir: dir, Transformer: identity.NewEncryptCheckTransformer()})
			if err != nil {
				s.t.Fatal(err)
			}
			return cache
		}
		s.hash = func(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
	}
}

// data sets the data of an object.
func data(values map[string]any) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) { object.Object["data"] = values }
}

// lastChange returns the newest Change of an object, once there are a number of them.
func (s *fixture) lastChange(o outbox.Object, count int) v1alpha1.ChangeSpec {
	s.t.Helper()
	var found []v1alpha1.ChangeSpec
	testkit.Eventually(s.t, fmt.Sprintf("%d Changes", count), func() error {
		if found = s.changesOf(o); len(found) != count {
			return fmt.Errorf("there are %d: %+v", len(found), found)
		}
		return nil
	})
	return found[count-1]
}

func TestChangesSayWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	s := newFixture(t, perChange, remembering(dir))
	s.idle()
	note := configMap("note")
	check := func(what string, got v1alpha1.ChangeSpec, fields []string, more, added, removed int32) {
		t.Helper()
		if !slices.Equal(got.Fields, fields) || got.MoreFields != more {
			t.Errorf("%s: fields %q and %d more, want %q and %d", what, got.Fields, got.MoreFields, fields, more)
		}
		if got.Lines == nil || *got.Lines != (v1alpha1.ChangedLines{Added: added, Removed: removed}) {
			t.Errorf("%s: lines %+v, want %d added and %d removed", what, got.Lines, added, removed)
		}
	}
	s.cluster.put(note, "1")
	check("a new object", s.lastChange(note, 1), nil, 0, 7, 0)
	s.cluster.put(note, "2")
	check("a value", s.lastChange(note, 2), []string{"/data/value"}, 0, 1, 1)
	many := map[string]any{"value": "2"}
	var keys []string
	for i := range 25 {
		key := fmt.Sprintf("k%02d", i)
		many[key], keys = "x", append(keys, "/data/"+key)
	}
	s.cluster.put(note, "", data(many))
	check("many values", s.lastChange(note, 3), keys[:20], 5, 25, 0)

	s.stop()
	s.start()
	s.cluster.put(note, "3")
	check("after a restart", s.lastChange(note, 4), keys[:20], 6, 1, 26)

	s.stop()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.idle() // The comparison at the start remembers the files.
	s.cluster.put(note, "4")
	check("after the files were lost", s.lastChange(note, 5), []string{"/data/value"}, 0, 1, 1)
	s.cluster.remove(note)
	check("a deletion", s.lastChange(note, 6), nil, 0, 0, 7)

	s.stop()
	s.openFiles = nil // Nothing is remembered.
	s.start()
	s.cluster.put(note, "5")
	s.lastChange(note, 7)
	s.cluster.put(note, "6")
	if got := s.lastChange(note, 8); got.Fields != nil || got.Lines != nil {
		t.Errorf("without the content before: fields %q, lines %+v", got.Fields, got.Lines)
	}
}

// TestAnotherObjectsFile has the file of another object, which was put there in Git, as the content before a change.
func TestAnotherObjectsFile(t *testing.T) {
	cache, err := blobcache.Open(t.Context(), blobcache.Config{Dir: t.TempDir(), Transformer: identity.NewEncryptCheckTransformer()})
	if err != nil {
		t.Fatal(err)
	}
	m := memory{cache}
	file := func(name, key string) outbox.Change {
		return outbox.Change{
			Object: configMap(name), Operation: v1alpha1.OperationUpdate,
			Content: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: shop\ndata:\n  %s: x\n", name, key),
		}
	}
	other, earlier, note := file("other", "confidential"), file("note", "before"), file("note", "after")
	for before, want := range map[*outbox.Change][]string{&other: nil, &earlier: {"/data/after", "/data/before"}} {
		blob := gitrepo.BlobHash(before.Content)
		m.remember(notedFile(*before, blob))
		var spec v1alpha1.ChangeSpec
		if m.describe(&spec, note, blob); !slices.Equal(spec.Fields, want) {
			t.Errorf("after the file of %s: fields %q, want %q", before.Object.Name, spec.Fields, want)
		}
	}
}

// TestReasons gives reasons for some changes.
func TestReasons(t *testing.T) {
	s := newFixture(t, perChange, remembering(t.TempDir()))
	s.idle()
	note := configMap("note")
	because := func(key, reason string) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) { object.SetAnnotations(map[string]string{key: reason}) }
	}
	for i, step := range []struct {
		value, want string
		change      []func(*unstructured.Unstructured)
	}{
		{"1", "first", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, "first")}},
		{"2", "", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, "first")}},
		{"3", "two\\u000alines", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, "two\nlines")}},
		{"4", "", nil},
		{"5", "kubectl set image", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationChangeCause, "kubectl set image")}},
		{"1", "back", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, "back")}},
		{"6", "", []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, "back")}},
		{"7", strings.Repeat("x", 512), []func(*unstructured.Unstructured){because(v1alpha1.AnnotationReason, strings.Repeat("x", 600))}},
	} {
		s.cluster.put(note, step.value, step.change...)
		got := s.lastChange(note, i+1)
		if got.Reason != step.want {
			t.Errorf("change %d: reason %q, want %q", i, got.Reason, step.want)
		}
		trailer := s.mustRun("log", "-1", "--format=%(trailers:key=X-ConfigButler-Reason,valueonly)", got.Commits[0].SHA)
		if trailer != step.want {
			t.Errorf("change %d: trailer %q, want %q", i, trailer, step.want)
		}
	}
	if files, err := s.files("main"); err != nil || strings.Contains(fmt.Sprint(files), "back") {
		t.Errorf("files = %v (%v)", files, err)
	}
}

// TestSecretsAreNotRemembered changes keys of Secrets. Their files change as a whole.
func TestSecretsAreNotRemembered(t *testing.T) {
	for name, mode := range map[string]v1alpha1.SecretsPolicy{"encrypted": v1alpha1.SecretsEncrypt, "as they are": v1alpha1.SecretsAsIs} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := newFixture(t, withSecrets, perChange, remembering(dir), func(s *fixture) { s.in.destinations[0].Spec.Secrets = mode })
			s.idle()
			db := secret("db")
			cause := func(object *unstructured.Unstructured) {
				object.SetAnnotations(map[string]string{v1alpha1.AnnotationChangeCause: "kubectl create --from-literal=password=aHVudGVyMg=="})
			}
			s.cluster.put(db, "", data(map[string]any{"user": "am9l", "password": "aHVudGVyMg=="}), cause)
			if got := s.lastChange(db, 1); got.Reason != "" || got.Fields != nil {
				t.Errorf("reason %q, fields %q", got.Reason, got.Fields)
			}
			s.cluster.put(db, "", data(map[string]any{"user": "am9l", "password": "aHVudGVyMw==", "port": "NTQzMg=="}))
			want := []string{"/data/password", "/data/port"}
			if got := s.lastChange(db, 2); !slices.Equal(got.Fields, want) || got.Lines != nil {
				t.Errorf("fields %q, lines %+v, want %q", got.Fields, got.Lines, want)
			}
			for _, path := range mustGlob(t, filepath.Join(dir, "*", "*")) {
				if content, err := os.ReadFile(path); err != nil || strings.Contains(string(content), "aHVudGVy") {
					t.Errorf("%s holds a value: %q (%v)", path, content, err)
				}
			}
		})
	}
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files %s (%v)", len(paths), pattern, err)
	}
	return paths
}

// TestBypasses has a person change what Flux manages.
func TestBypasses(t *testing.T) {
	r := newReports()
	s := newFixture(t, perChange, remembering(t.TempDir()), func(s *fixture) { s.facts, s.maxWait = r, 10*time.Second })
	s.idle()
	note := configMap("note")
	before, err := testutil.GetCounterMetricValue(bypassed.WithLabelValues("Flux"))
	if err != nil {
		t.Fatal(err)
	}
	edit := func(value, user, manager string) {
		s.cluster.mu.Lock()
		version := s.cluster.version + 1
		s.cluster.mu.Unlock()
		r.publish(attribution.Fact{
			Operation: v1alpha1.OperationUpdate, Resource: note.Resource, Namespace: note.Namespace, Name: note.Name, UID: "note",
			ID: value, Begun: time.Now(), Ended: time.Now(), After: fmt.Sprint(version), Signal: attribution.Audit,
			Actor: attribution.Actor{Username: user},
		})
		s.cluster.put(note, value, func(object *unstructured.Unstructured) {
			object.SetUID(types.UID("note"))
			object.SetLabels(map[string]string{
				"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
			})
			now := metav1.Now()
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &now}})
		})
	}
	edit("1", "system:serviceaccount:flux-system:kustomize-controller", "kustomize-controller")
	flux := s.lastChange(note, 1)
	want := &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Kind: "Kustomization", Namespace: "flux-system", Name: "shop"}
	if diff := cmp.Diff(want, flux.ManagedBy); diff != "" || flux.Bypass {
		t.Errorf("bypass %t, managed by (-want +got):\n%s", flux.Bypass, diff)
	}
	edit("2", "jane", "kubectl-edit")
	jane := s.lastChange(note, 2)
	if !jane.Bypass || jane.Author.Username != "jane" {
		t.Errorf("bypass %t, author %+v", jane.Bypass, jane.Author)
	}
	trailer := s.mustRun("log", "-1", "--format=%(trailers:key=X-ConfigButler-Bypass,valueonly)", jane.Commits[0].SHA)
	if trailer != "Kustomization flux-system/shop (Flux)" {
		t.Errorf("trailer %q", trailer)
	}
	if got := <-s.bypassed; got != "note: jane changed this object, which Kustomization flux-system/shop (Flux) manages" {
		t.Errorf("Event %q", got)
	}
	if after, err := testutil.GetCounterMetricValue(bypassed.WithLabelValues("Flux")); err != nil || after != before+1 || len(s.bypassed) > 0 {
		t.Errorf("the counter grew by %v, %d more Events (%v)", after-before, len(s.bypassed), err)
	}
}

// TestBypassesAreBounded deletes thousands of objects at once.
func TestBypassesAreBounded(t *testing.T) {
	events := 0
	b := newBypasses(func(*unstructured.Unstructured, string) { events++ })
	change := outbox.Change{
		Operation: v1alpha1.OperationDelete, Author: attribution.Author{Actor: attribution.Actor{Username: "jane"}, Signal: attribution.Audit},
		Object: configMap("a"),
		Marks:  outbox.Marks{ManagedBy: &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByHelm, Name: "shop"}},
	}
	deleted := watch.Change{Operation: watch.Delete, Object: &unstructured.Unstructured{}}
	for range 5000 {
		b.report(deleted, change)
	}
	if events < bypassBurst || events > 2*bypassBurst {
		t.Errorf("%d Events, want about %d", events, bypassBurst)
	}
	quiet := 0
	b = newBypasses(func(*unstructured.Unstructured, string) { quiet++ })
	for _, object := range []outbox.Object{secret("db"), {Version: "v1", Resource: "nodes", Name: "one"}} {
		change.Object = object
		b.report(deleted, change)
	}
	if quiet > 0 {
		t.Errorf("%d Events of objects whose names not everybody may know", quiet)
	}
	if got := bypassMessage(deleted.Operation, change.Author, change.Marks.ManagedBy); got != "jane deleted this object, which release shop (Helm) manages" {
		t.Error(got)
	}
}

// TestReasonIsOfTheLastWrite annotates an object after its change, as kubectl's documentation does with change-cause.
func TestReasonIsOfTheLastWrite(t *testing.T) {
	s := newFixture(t, perChange, remembering(t.TempDir()))
	s.idle()
	note := configMap("note")
	written := func(manager, at string, annotated bool) map[string]any {
		fields := map[string]any{"f:data": map[string]any{}}
		if annotated {
			fields["f:metadata"] = map[string]any{"f:annotations": map[string]any{"f:" + v1alpha1.AnnotationChangeCause: map[string]any{}}}
		}
		return map[string]any{"manager": manager, "operation": "Update", "time": at, "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	put := func(value, cause string, managers ...any) {
		s.cluster.put(note, value, func(object *unstructured.Unstructured) {
			if cause != "" {
				object.SetAnnotations(map[string]string{v1alpha1.AnnotationChangeCause: cause})
			}
			object.Object["metadata"].(map[string]any)["managedFields"] = managers
		})
	}
	put("1", "", written("kubectl-set", "2026-11-26T12:00:00Z", false))
	s.lastChange(note, 1)
	put("2", "", written("kubectl-set", "2026-11-26T12:01:00Z", false))
	s.lastChange(note, 2)
	annotated := written("kubectl-annotate", "2026-11-26T12:01:30Z", true)
	put("2", "version 2", written("kubectl-set", "2026-11-26T12:01:00Z", false), annotated)
	put("3", "version 2", written("kubectl-set", "2026-11-26T12:02:00Z", false), annotated)
	if got := s.lastChange(note, 3); got.Reason != "" {
		t.Errorf("a later change has the reason %q", got.Reason)
	}
	put("4", "version 4", written("kubectl-edit", "2026-11-26T12:03:00Z", true))
	if got := s.lastChange(note, 4); got.Reason != "version 4" {
		t.Errorf("the change that sets the reason has %q", got.Reason)
	}
}

// TestMarksAreBounded has an object with marks and keys as long as they can be, so that its Change still fits into the store.
func TestMarksAreBounded(t *testing.T) {
	s := newFixture(t, perChange, remembering(t.TempDir()))
	s.idle()
	note, long := configMap("note"), strings.Repeat("<", 40_000)
	mark := func(object *unstructured.Unstructured) {
		object.SetAnnotations(map[string]string{
			"meta.helm.sh/release-name": long, "meta.helm.sh/release-namespace": long, v1alpha1.AnnotationReason: long,
		})
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	}
	s.cluster.put(note, "1", mark)
	s.lastChange(note, 1)
	values := map[string]any{"a": "1"}
	for i := range 30 {
		values[fmt.Sprintf("%02d%s", i, long[:1000])] = "x"
	}
	s.cluster.put(note, "", data(values), mark)
	got := s.lastChange(note, 2)
	size := len(fmt.Sprintf("%v%+v%s", got.Fields, got.ManagedBy, got.Reason))
	if size > 4096 || len(got.Fields) == 0 || int(got.MoreFields)+len(got.Fields) != 32 {
		t.Errorf("%d bytes, %d fields and %d more", size, len(got.Fields), got.MoreFields)
	}
}

// TestBypassWithinACommit has two changes of an object in one commit, of which the first is a bypass.
func TestBypassWithinACommit(t *testing.T) {
	manager := &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByHelm, Name: "shop"}
	jane := attribution.Author{Actor: attribution.Actor{Username: "jane"}, Signal: attribution.Audit}
	edit := outbox.Change{
		Path: "a.yaml", Object: configMap("a"), Operation: v1alpha1.OperationUpdate, Author: jane,
		Marks: outbox.Marks{ManagedBy: manager, Manager: "kubectl-edit"},
	}
	upgrade := edit
	upgrade.Marks.Manager = "helm"
	for name, tt := range map[string]struct {
		changes []outbox.Change
		want    bool
	}{
		"first": {[]outbox.Change{edit, upgrade}, true}, "last": {[]outbox.Change{upgrade, edit}, true}, "none": {[]outbox.Change{upgrade}, false},
	} {
		other := upgrade
		other.Path = "b.yaml"
		combined := combine(append(tt.changes, other))
		if got := combined["a.yaml"].bypass; got != tt.want || combined["b.yaml"].bypass {
			t.Errorf("%s: %t, of another object %t", name, got, combined["b.yaml"].bypass)
		}
	}
}
