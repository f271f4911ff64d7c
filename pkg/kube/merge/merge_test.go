// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	kubediff "github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

const ours = "slipstream"

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(converted, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// patched returns an object with a strategic merge patch laid over it.
func patched(t testing.TB, o *unstructured.Unstructured, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return o
	}
	patches, errs := patch.Compile([]patch.Patch{{Target: patch.Target{Kind: o.GetKind()}, Type: patch.StrategicMerge, Patch: text}}, nil)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	out, err := patches.Apply(o)
	if err != nil {
		t.Fatal(err)
	}
	return out.DeepCopy()
}

// server keeps an object as an API server does: it is the library's own field manager.
type server struct {
	managedfieldstest.TestFieldManager
	t testing.TB
}

// newServer has an object that was applied by our manager.
func newServer(t testing.TB, applied *unstructured.Unstructured) server {
	t.Helper()
	s := server{managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), applied.GroupVersionKind()), t}
	s.apply(ours, applied)
	return s
}

func (s server) apply(manager string, o *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.Apply(o, manager, true); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) live() *unstructured.Unstructured {
	live := s.Live().(*unstructured.Unstructured)
	live.SetResourceVersion("7")
	return live
}

func (s server) update(manager string, o *unstructured.Unstructured) {
	s.t.Helper()
	if err := s.Update(o, manager); err != nil {
		s.t.Fatal(err)
	}
}

// carryOut does what a result says, and wants it to have been said so that an API server takes it.
func (s server) carryOut(r merge.Result) {
	s.t.Helper()
	live := s.live()
	removal, err := r.RemovalPatch(live)
	if err != nil {
		s.t.Fatal(err)
	}
	if removal != nil {
		s.update(ours, jsonPatched(s.t, live, removal))
	}
	s.apply(ours, r.Apply)
}

func jsonPatched(t testing.TB, o *unstructured.Unstructured, text []byte) *unstructured.Unstructured {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	before, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return out
}

func merger() merge.Merger {
	return merge.Merger{Schemas: kubediff.NewSchemas(nil, clock.RealClock{}), Manager: ours}
}

// lines are the fields of a result below the containers of a Deployment.
func lines(kind string, fields []merge.Field) []string {
	var out []string
	for _, f := range fields {
		line := kind + " " + strings.TrimPrefix(f.Path.String(), "/spec/template/spec")
		if len(f.Managers) > 0 {
			line += fmt.Sprintf(" %v", f.Managers)
		}
		out = append(out, line)
	}
	return out
}

func said(r merge.Result) []string {
	out := lines("conflict", r.Conflicts)
	out = append(out, lines("overwritten", r.Overwritten)...)
	out = append(out, lines("remove", r.Remove)...)
	return append(out, lines("survives", r.Survives)...)
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: dev, labels: {app: web, tier: front}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        args: [serve]
        env: [{name: LEVEL, value: info}, {name: MODE, value: live}]
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 53, protocol: UDP}]
        resources: {limits: {memory: 1Gi}}
      - name: proxy
        image: proxy:1
        env: [{name: UPSTREAM, value: web}]
      volumes: [{name: scratch, emptyDir: {medium: Memory}}]
`

// Patches of the containers of it.
func web(fields string) string {
	return "{spec: {template: {spec: {containers: [{name: web, " + fields + "}]}}}}"
}

func proxy(fields string) string {
	return "{spec: {template: {spec: {containers: [{name: proxy, " + fields + "}]}}}}"
}

func TestBranch(t *testing.T) {
	const (
		webAt   = "/containers[name=web]"
		proxyAt = "/containers[name=proxy]"
	)
	tests := map[string]struct {
		// edit is the change that jane makes with kubectl, intent that of the catalog, patched a patch of the environment.
		edit, intent, patched string
		keep, take            string
		want                  []string
		// live are texts that the live object contains then, absent are texts that it does not contain.
		live, absent string
	}{
		"nothing":                 {},
		"a change of the catalog": {intent: web("image: web:2"), live: "web:2", absent: "web:1"},
		"an added variable survives": {edit: web("env: [{name: DEBUG, value: yes-please}]"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/env[name=DEBUG] [jane]"}, live: "yes-please web:2"},
		"another field of the same container": {edit: web("resources: {limits: {memory: 2Gi}}"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/resources/limits/memory [jane]"}, live: "2Gi web:2", absent: "1Gi web:1"},
		"the same field": {edit: web("resources: {limits: {memory: 2Gi}}"), intent: web("resources: {limits: {memory: 3Gi}}, image: web:2"),
			want: []string{"conflict " + webAt + "/resources/limits/memory [jane]"}},
		"the same field, kept": {
			edit:   web("resources: {limits: {memory: 2Gi}}"),
			intent: web("resources: {limits: {memory: 3Gi}}, image: web:2"), keep: webAt + "/resources/limits/memory",
			want: []string{"survives " + webAt + "/resources/limits/memory [jane]"}, live: "2Gi web:2", absent: "3Gi",
		},
		"the same field, taken": {
			edit: web("resources: {limits: {memory: 2Gi}}"), intent: web("resources: {limits: {memory: 3Gi}}"), take: webAt + "/resources",
			want: []string{"overwritten " + webAt + "/resources/limits/memory [jane]"}, live: "3Gi", absent: "2Gi",
		},
		"kept and taken is kept": {edit: web("image: web:jane"), intent: web("image: web:2"), take: webAt, keep: webAt + "/image",
			want: []string{"survives " + webAt + "/image [jane]"}, live: "web:jane"},
		"the same change": {edit: web("image: web:2"), intent: web("image: web:2"), live: "web:2"},
		"the same removal": {
			edit: web("env: [{name: MODE, $patch: delete}]"), intent: web("env: [{name: MODE, $patch: delete}]"), absent: "MODE",
		},
		"a variable of each": {
			edit: web("env: [{name: LEVEL, value: debug}]"), intent: web("env: [{name: MODE, value: test}]"),
			want: []string{"survives " + webAt + "/env[name=LEVEL]/value [jane]"}, live: "debug test", absent: "info",
		},
		"a variable of both": {
			edit: web("env: [{name: LEVEL, value: debug}]"), intent: web("env: [{name: LEVEL, value: warn}]"),
			want: []string{"conflict " + webAt + "/env[name=LEVEL]/value [jane]"},
		},
		"both add a variable": {
			edit: web("env: [{name: NEW, value: a}]"), intent: web("env: [{name: NEW, value: b}]"),
			want: []string{"conflict " + webAt + "/env[name=NEW]/value [jane]"},
		},
		"a port by its keys": {edit: web("ports: [{containerPort: 53, name: dns}]"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/ports[containerPort=53,protocol=UDP]/name [jane]"}, live: "dns"},
		"a list that is one field": {
			edit: web("args: [serve, -v]"), intent: web("args: [serve, -q]"), want: []string{"conflict " + webAt + "/args [jane]"},
		},
		"a removed variable stays so": {
			edit: web("env: [{name: MODE, $patch: delete}]"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/env[name=MODE]"}, live: "web:2", absent: "MODE",
		},
		"all variables are removed": {
			edit: proxy("env: [{name: UPSTREAM, $patch: delete}]"), intent: web("image: web:2"),
			want: []string{"survives " + proxyAt + "/env[name=UPSTREAM]"}, live: "web:2", absent: "UPSTREAM",
		},
		"removed live, changed in the catalog": {
			edit: web("env: [{name: MODE, $patch: delete}]"), intent: web("env: [{name: MODE, value: test}]"),
			want: []string{"conflict " + webAt + "/env[name=MODE]/value"},
		},
		"removed live, changed in the catalog, taken": {
			edit: web("env: [{name: MODE, $patch: delete}]"), intent: web("env: [{name: MODE, value: test}]"),
			take: webAt + "/env[name=MODE]", want: []string{"overwritten " + webAt + "/env[name=MODE]"}, live: "MODE test",
		},
		"removed live, changed in the catalog, kept": {
			edit: web("env: [{name: MODE, $patch: delete}]"), intent: web("env: [{name: MODE, value: test}]"),
			keep: webAt, want: []string{"survives " + webAt + "/env[name=MODE]"}, absent: "MODE",
		},
		"changed live, removed in the catalog": {
			edit: web("env: [{name: MODE, value: jane}]"), intent: web("env: [{name: MODE, $patch: delete}]"),
			want: []string{"conflict " + webAt + "/env[name=MODE]/value [jane]"},
		},
		"changed live, removed in the catalog, kept": {
			edit: web("env: [{name: MODE, value: jane}]"), intent: web("env: [{name: MODE, $patch: delete}]"),
			keep: webAt + "/env[name=MODE]/value", want: []string{"survives " + webAt + "/env[name=MODE]/value [jane]"}, live: "MODE jane",
		},
		"changed live, removed in the catalog, taken": {
			edit: web("env: [{name: MODE, value: other}]"), intent: web("env: [{name: MODE, $patch: delete}]"),
			take:   webAt + "/env[name=MODE]/value",
			want:   []string{"overwritten " + webAt + "/env[name=MODE]/value [jane]", "remove " + webAt + "/env[name=MODE] [jane]"},
			absent: "MODE other",
		},
		"a label changed live, removed in the catalog, taken": {
			edit: "{metadata: {labels: {tier: back}}}", intent: "{metadata: {labels: {tier: null}}}", take: "/metadata/labels/tier",
			want: []string{"overwritten /metadata/labels/tier [jane]", "remove /metadata/labels/tier [jane]"}, absent: "tier",
		},
		"a container goes in the catalog": {intent: proxy("$patch: delete"), absent: "proxy"},
		"a container goes that others use": {
			edit: proxy("env: [{name: DEBUG, value: x}]"), intent: proxy("$patch: delete"),
			want: []string{"conflict " + proxyAt + "/env[name=DEBUG] [jane]"},
		},
		"a container goes, and is kept": {
			edit: proxy("env: [{name: DEBUG, value: x}]"), intent: proxy("$patch: delete"), keep: proxyAt,
			want: []string{"survives " + proxyAt + "/env[name=DEBUG] [jane]"}, live: "DEBUG proxy:1 UPSTREAM",
		},
		"a container goes, and is let go": {
			edit: proxy("env: [{name: DEBUG, value: x}]"), intent: proxy("$patch: delete"), take: proxyAt,
			want: []string{"overwritten " + proxyAt + "/env[name=DEBUG] [jane]", "remove " + proxyAt + " [jane]"}, absent: "proxy",
		},
		"a container goes, and is kept for a field": {
			edit: proxy("image: proxy:jane, env: [{name: DEBUG, value: x}]"), intent: proxy("$patch: delete"), keep: proxyAt + "/image",
			take: proxyAt, want: []string{"survives " + proxyAt + "/env[name=DEBUG] [jane]", "survives " + proxyAt + "/image [jane]"},
			live: "proxy:jane UPSTREAM DEBUG",
		},
		"a container was removed": {
			edit: proxy("$patch: delete"), intent: web("image: web:2"), want: []string{"survives " + proxyAt}, live: "web:2", absent: "proxy",
		},
		"a container was removed, and changes": {edit: proxy("$patch: delete"), intent: proxy("env: [{name: NEW, value: x}]"), want: []string{
			"conflict " + proxyAt + "/env[name=NEW]"}},
		"a container was removed, and comes back": {
			edit: proxy("$patch: delete"), intent: proxy("env: [{name: NEW, value: x}]"),
			take: proxyAt + "/env", want: []string{"overwritten " + proxyAt}, live: "proxy:1 UPSTREAM NEW",
		},
		"a field within a map": {
			edit: "{spec: {template: {spec: {volumes: [{name: scratch, emptyDir: {medium: null}}]}}}}", intent: web("image: web:2"),
			want: []string{"survives /volumes[name=scratch]/emptyDir/medium"}, live: "web:2 emptyDir", absent: "Memory",
		},
		"a map goes": {
			edit: web("resources: {limits: null}"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/resources/limits/memory"}, live: "web:2", absent: "limits memory",
		},
		"a value becomes a reference": {
			edit: web("env: [{name: MODE, value: null, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"), intent: web("image: web:2"),
			want: []string{"survives " + webAt + "/env[name=MODE]/value", "survives " + webAt + "/env[name=MODE]/valueFrom/fieldRef [jane]"},
			live: "spec.nodeName",
		},
		"a value becomes a reference, and changes": {
			edit:   web("env: [{name: MODE, value: null, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]"),
			intent: web("env: [{name: MODE, value: test}]"), want: []string{"conflict " + webAt + "/env[name=MODE]/value"},
		},

		"a patch wins over an edit": {
			edit: web("image: web:jane"), intent: web("image: web:2"), patched: web("image: web:branch"),
			want: []string{"overwritten " + webAt + "/image [jane]"}, live: "web:branch",
		},
		"a patch removes a container": {
			edit: proxy("image: proxy:jane"), patched: proxy("$patch: delete"),
			want: []string{"overwritten " + proxyAt + "/image [jane]", "remove " + proxyAt + " [jane]"}, absent: "proxy",
		},
		"a patch removes what others use": {
			edit: proxy("env: [{name: DEBUG, value: x}]"), patched: proxy("$patch: delete"),
			want: []string{"overwritten " + proxyAt + "/env[name=DEBUG] [jane]", "remove " + proxyAt + " [jane]"}, absent: "proxy DEBUG",
		},
		"a patch of what was removed": {
			edit: proxy("$patch: delete"), patched: proxy("image: proxy:branch"),
			want: []string{"overwritten " + proxyAt}, live: "proxy:branch UPSTREAM",
		},
		"a patch beside an edit": {
			edit: web("env: [{name: DEBUG, value: x}]"), intent: web("image: web:2"), patched: web("image: web:branch"),
			want: []string{"survives " + webAt + "/env[name=DEBUG] [jane]"}, live: "web:branch DEBUG",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			base := object(t, deployment)
			s := newServer(t, base)
			if test.edit != "" {
				s.update("jane", patched(t, s.live(), test.edit))
			}
			unpatched := patched(t, base, test.intent)
			v := merge.Versions{Base: base, Live: s.live(), Desired: patched(t, unpatched, test.patched), Unpatched: unpatched}
			r := merge.Resolution{Keep: paths(t, test.keep), Take: paths(t, test.take)}
			result, err := merger().Branch(t.Context(), v, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, said(result)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if len(result.Conflicts) > 0 {
				if result.Apply != nil {
					t.Error("something is applied")
				}
				return
			}
			s.carryOut(result)
			checkLive(t, s.live(), test.live, test.absent)
			checkSettled(t, merger(), s, v)
		})
	}
}

func paths(t *testing.T, text string) []fieldpath.Path {
	t.Helper()
	if text == "" {
		return nil
	}
	if !strings.HasPrefix(text, "/metadata") {
		text = "/spec/template/spec" + text
	}
	path, err := fieldpath.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return []fieldpath.Path{path}
}

func checkLive(t *testing.T, live *unstructured.Unstructured, has, absent string) {
	t.Helper()
	live.SetManagedFields(nil)
	text, err := yaml.Marshal(live.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(has) {
		if !strings.Contains(string(text), word) {
			t.Errorf("%s is missing:\n%s", word, text)
		}
	}
	for _, word := range strings.Fields(absent) {
		if strings.Contains(string(text), word) {
			t.Errorf("unexpected %s:\n%s", word, text)
		}
	}
}

// checkSettled merges again with nothing changed, which must change nothing.
func checkSettled(t testing.TB, m merge.Merger, s server, v merge.Versions) {
	t.Helper()
	before := s.live()
	v.Base, v.Live = v.Desired, before
	again, err := m.Branch(t.Context(), v, merge.Resolution{})
	if err != nil || len(again.Conflicts) > 0 || len(again.Overwritten) > 0 || len(again.Remove) > 0 {
		t.Fatalf("merged again: %q %v", said(again), err)
	}
	s.carryOut(again)
	after := s.live()
	for _, o := range []*unstructured.Unstructured{before, after} {
		for i, entry := range o.GetManagedFields() {
			entry.Time = nil
			entries := o.GetManagedFields()
			entries[i] = entry
			o.SetManagedFields(entries)
		}
	}
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("applied again:\n%s", diff)
	}
}

// BenchmarkBranch merges a Deployment of two containers that a developer and the catalog have changed.
func BenchmarkBranch(b *testing.B) {
	base := object(b, deployment)
	s := newServer(b, base)
	s.update("jane", patched(b, s.live(), web("env: [{name: DEBUG, value: x}]")))
	v := merge.Versions{Base: base, Live: s.live(), Desired: patched(b, base, web("image: web:2"))}
	m := merger()
	for b.Loop() {
		if result, err := m.Branch(b.Context(), v, merge.Resolution{}); err != nil || len(result.Survives) != 1 {
			b.Fatalf("%v %v", result, err)
		}
	}
}
