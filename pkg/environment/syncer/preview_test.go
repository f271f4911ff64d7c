// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// all is a request for everything.
var all = v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}

// next is the next version of production: web, its settings and its password have changed.
func (s *previewFixture) next() {
	s.Helper()
	s.put(strings.ReplaceAll(settings, "info", "debug"), strings.ReplaceAll(database, "aHVudGVyMg==", "cXVpZXQ="))
	s.catalog.Status.Revision++
	s.offer(strings.ReplaceAll(web, "web:1", "web:2"))
}

func TestWhatASyncWouldChange(t *testing.T) {
	const image = "Changed Deployment web /spec/template/spec/containers[name=web]/image \"web:1\" -> \"web:2\""
	tests := map[string]struct {
		show     func(*previewFixture) (*v1alpha1.SyncPlan, error)
		revision int64
		want     []string
	}{
		"diff": {
			show: func(s *previewFixture) (*v1alpha1.SyncPlan, error) {
				return s.previewer.Diff(s.Context(), s.environment)
			},
			revision: 2,
			want: []string{
				"Changed ConfigMap settings /data/level \"info\" -> \"debug\"", "Changed Secret database /data/password ? -> ?", image,
			},
		},
		"secretdiff": {
			show: func(s *previewFixture) (*v1alpha1.SyncPlan, error) {
				return s.previewer.SecretDiff(s.Context(), s.environment)
			},
			revision: 2,
			want: []string{
				"Changed ConfigMap settings /data/level \"info\" -> \"debug\"",
				"Changed Secret database /data/password \"aHVudGVyMg==\" -> \"cXVpZXQ=\"", image,
			},
		},
		"a request for all": {
			show: func(s *previewFixture) (*v1alpha1.SyncPlan, error) {
				return s.previewer.Rehearse(s.Context(), s.environment, all)
			},
			revision: 2,
			want: []string{
				"Changed ConfigMap settings /data/level \"info\" -> \"debug\"", "Changed Secret database /data/password ? -> ?", image,
			},
		},
		"a request for what workloads refer to": {
			show: func(s *previewFixture) (*v1alpha1.SyncPlan, error) {
				return s.previewer.Rehearse(s.Context(), s.environment, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
			},
			want: []string{"Changed ConfigMap settings /data/level \"info\" -> \"debug\"", "Changed Secret database /data/password ? -> ?"},
		},
		"a request for a workload that has not changed": {
			show: func(s *previewFixture) (*v1alpha1.SyncPlan, error) {
				request := all
				request.Workloads = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadCronJob, Name: "report"}}
				return s.previewer.Rehearse(s.Context(), s.environment, request)
			},
			revision: 2, want: []string{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newPreviewFixture(t)
			s.sync()
			s.next()
			s.environment.Status.LatestDependencySync = "alice-bcdfg"
			shown, err := tt.show(s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, changeLines(shown)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if shown.FromRevision != 1 || shown.Revision != tt.revision || shown.DependencySync != "alice-bcdfg" || len(shown.Warnings) > 0 {
				t.Errorf("%+v", shown)
			}
			if wrote := s.wrote(); len(wrote) > 0 {
				t.Errorf("unexpected writes: %v", wrote)
			}
		})
	}
}

// TestSecretsAreHidden checks that previews other than secretdiff contain no values of Secrets, neither those of production nor those of
// the copy.
func TestSecretsAreHidden(t *testing.T) {
	s := newPreviewFixture(t)
	show := func() {
		for _, planned := range []func() (*v1alpha1.SyncPlan, error){
			func() (*v1alpha1.SyncPlan, error) { return s.previewer.Diff(s.Context(), s.environment) },
			func() (*v1alpha1.SyncPlan, error) { return s.previewer.Rehearse(s.Context(), s.environment, all) },
		} {
			shown, err := planned()
			if err != nil {
				s.Fatal(err)
			}
			text, err := json.Marshal(shown)
			if err != nil {
				s.Fatal(err)
			}
			for _, value := range []string{"aHVudGVyMg", "cXVpZXQ", "hunter2"} {
				if strings.Contains(string(text), value) {
					s.Errorf("preview contains %s: %s", value, text)
				}
			}
		}
	}
	annotated := func(value string) {
		s.put(strings.Replace(database, "name: database",
			`name: database, annotations: {example.com/note: "`+value+`", kapp.k14s.io/original: "`+value+`"}`, 1))
	}
	annotated("hunter2")
	show()
	s.sync()
	s.next()
	annotated("cXVpZXQ")
	show()
}

// TestWhatOnlyTheEnvironmentNamesIsHidden checks that the values of custom resources, and of ConfigMaps that only patches or spec.include
// name, are hidden: it is not checked whether the user who requests the preview may read them.
func TestWhatOnlyTheEnvironmentNamesIsHidden(t *testing.T) {
	const (
		own      = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {level: value-1}}"
		widget   = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: extra}, spec: {level: value-1}}"
		ofOthers = "Changed ConfigMap %s /data/level ? -> ?"
	)
	s := newPreviewFixture(t)
	produce := func(version string) {
		for _, text := range []string{fmt.Sprintf(own, "included"), fmt.Sprintf(own, "patched"), widget} {
			s.put(strings.ReplaceAll(text, "value-1", version))
		}
	}
	s.environment.Spec.Include = []v1alpha1.IncludedObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "included"}, {APIVersion: "example.com/v1", Kind: "Widget", Name: "extra"},
	}
	s.environment.Spec.Patches = []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchJSON6902,
		Patch: "[{op: add, path: /spec/template/spec/containers/0/envFrom/-, value: {configMapRef: {name: patched}}}]",
	}}
	produce("value-1")
	s.sync()
	s.next()
	produce("value-2")
	show := func(when string, planned func(context.Context, *v1alpha1.Environment) (*v1alpha1.SyncPlan, error), want ...string) {
		s.Helper()
		shown, err := planned(s.Context(), s.environment)
		if err != nil {
			s.Fatal(err)
		}
		text, err := json.Marshal(shown)
		if err != nil {
			s.Fatal(err)
		}
		if strings.Contains(string(text), "value-") {
			s.Errorf("%s: preview contains %s", when, text)
		}
		for _, line := range want {
			if !slices.Contains(changeLines(shown), line) {
				s.Errorf("%s: changes lack %s: %q", when, line, changeLines(shown))
			}
		}
	}
	hidden := []string{
		fmt.Sprintf(ofOthers, "included"), fmt.Sprintf(ofOthers, "patched"), "Changed Widget extra /spec/level ? -> ?",
	}
	catalogs := "Changed ConfigMap settings /data/level \"info\" -> \"debug\""
	show("diff", s.previewer.Diff, append(hidden, catalogs)...)
	show("secretdiff", s.previewer.SecretDiff, append(hidden, catalogs)...)
	show("a refresh", func(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
		return s.previewer.Rehearse(ctx, e, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	}, hidden[0], hidden[1], catalogs)

	s.sync()
	s.environment.Spec.PinnedRevision, s.environment.Spec.Include = ptr.To[int64](1), nil
	show("a pin to an earlier revision", s.previewer.Diff, append(hidden, "Changed ConfigMap settings /data/level \"debug\" -> \"info\"")...)
}

func TestWhatKeepsASyncFromIt(t *testing.T) {
	tests := map[string]struct {
		prepare  func(*previewFixture)
		changes  []string
		warnings []string
	}{
		"the source lacks something": {
			prepare:  func(s *previewFixture) { s.cluster.Drop("configmaps", environmenttest.Production, "settings") },
			changes:  []string{"Added Secret database", "Added Deployment web"},
			warnings: []string{"Failed to sync ConfigMap 'settings' from production - does not exist"},
		},
		"the cluster refuses an object": {
			prepare: func(s *previewFixture) {
				s.cluster.Answer(func(request string) *metav1.Status {
					if request == "dry PATCH shop-alice/configmaps/settings" {
						return environmenttest.Status(403, metav1.StatusReasonForbidden, "exceeded quota: small")
					}
					return nil
				})
			},
			changes: []string{
				"Added ConfigMap settings: ConfigMap 'settings' of shop-alice: exceeded quota: small", "Added Secret database", "Added Deployment web",
			},
		},
		"an object of another user exists": {
			prepare: func(s *previewFixture) {
				o := environmenttest.Object(s.T, settings)
				o.SetNamespace(environmenttest.Target)
				s.cluster.Put(o)
			},
			changes: []string{
				"Changed ConfigMap settings: ConfigMap 'settings' of shop-alice is there, and the environment has not written it: force takes it over",
				"Added Secret database", "Added Deployment web",
			},
		},
		"the target is to be created": {
			prepare: func(s *previewFixture) {
				s.cluster.Drop("namespaces", "", environmenttest.Target)
				s.environment.Spec.CreateNamespace = true
			},
			changes:  []string{"Added Namespace shop-alice", "Added ConfigMap settings", "Added Secret database", "Added Deployment web"},
			warnings: []string{"The namespace shop-alice does not exist yet, so nothing could be tried in it"},
		},
		"the target is missing": {
			prepare:  func(s *previewFixture) { s.cluster.Drop("namespaces", "", environmenttest.Target) },
			changes:  []string{"Added ConfigMap settings", "Added Secret database", "Added Deployment web"},
			warnings: []string{"Namespace 'shop-alice': does not exist"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newPreviewFixture(t)
			tt.prepare(s)
			shown, err := s.previewer.Rehearse(t.Context(), s.environment, all)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.changes, changeLines(shown)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, shown.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if wrote := s.wrote(); len(wrote) > 0 {
				t.Errorf("unexpected writes: %v", wrote)
			}
		})
	}
}

func TestAPinnedEnvironmentGetsItsRevision(t *testing.T) {
	e := environmenttest.Environment()
	forced := all
	forced.Force = true
	if got := syncer.PreviewRequest(e, all).Revision; got != 0 {
		t.Errorf("revision without a pin = %d", got)
	}
	e.Spec.PinnedRevision = ptr.To[int64](3)
	if got := syncer.PreviewRequest(e, all).Revision; got != 3 {
		t.Errorf("revision with a pin = %d", got)
	}
	if got := syncer.PreviewRequest(e, forced).Revision; got != 0 {
		t.Errorf("forced revision = %d", got)
	}
}

// slow is a Runner that returns when the test allows it, and reports its calls.
type slow struct{ asked, answer chan struct{} }

func (r slow) Run(context.Context, syncer.Request) (syncer.Result, error) {
	r.asked <- struct{}{}
	<-r.answer
	return syncer.Result{}, errors.New("enough")
}

// TestPlansAreMadeAFewAtATime checks that concurrent previews are limited, and that waiting ones end with their contexts.
func TestPlansAreMadeAFewAtATime(t *testing.T) {
	runner := slow{asked: make(chan struct{}), answer: make(chan struct{})}
	previewer := syncer.NewPreviewer(runner)
	const most = 4
	answers := make(chan error, most)
	for range most {
		go func() {
			_, err := previewer.Diff(t.Context(), environmenttest.Environment())
			answers <- err
		}()
		<-runner.asked
	}
	impatient, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := previewer.Diff(impatient, environmenttest.Environment()); !errors.Is(err, context.Canceled) {
		t.Errorf("another preview returned %v", err)
	}
	close(runner.answer)
	for range most {
		if err := <-answers; err == nil || err.Error() != "enough" {
			t.Error(err)
		}
	}
}

// TestSecretsThatMayNotBeCopiedAreNotShown revokes the permission of the catalog's editor to read Secrets. Newer versions must then not be
// shown.
func TestSecretsThatMayNotBeCopiedAreNotShown(t *testing.T) {
	s := newPreviewFixture(t)
	environmenttest.Share(s.catalog)
	s.offer(web)
	s.sync()
	s.next()
	s.rights.Lose("get secrets production")
	for name, show := range map[string]func() (*v1alpha1.SyncPlan, error){
		"diff":       func() (*v1alpha1.SyncPlan, error) { return s.previewer.Diff(s.Context(), s.environment) },
		"secretdiff": func() (*v1alpha1.SyncPlan, error) { return s.previewer.SecretDiff(s.Context(), s.environment) },
		"a request":  func() (*v1alpha1.SyncPlan, error) { return s.previewer.Rehearse(s.Context(), s.environment, all) },
	} {
		shown, err := show()
		if err != nil {
			t.Fatal(err)
		}
		const warning = `Failed to sync Secret 'database' from production - user "eve" may not get secrets in the namespace production`
		if len(shown.Warnings) != 1 || !strings.HasPrefix(shown.Warnings[0], warning) {
			t.Errorf("warnings of %s = %q", name, shown.Warnings)
		}
		for _, line := range changeLines(shown) {
			if strings.Contains(line, "Secret") {
				t.Errorf("%s contains %s", name, line)
			}
		}
	}
}
