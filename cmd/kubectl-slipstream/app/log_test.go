// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// changeServer serves Changes, a page of one each, as an API server does.
type changeServer struct {
	*httptest.Server
	changes []v1alpha1.Change
	// later are the Changes after the first watch.
	later []v1alpha1.Change
	// selectors are those of lists, and pages the number of their pages.
	selectors []string
	pages     int
	// watches are the responses to watches: the Changes that are added, or nil for an expired resourceVersion.
	watches [][]v1alpha1.Change
	watched atomic.Int64
	// names are the names of objects by the path of their list. Other objects are not known.
	names map[string][]string
	// quiet is called once there are no more responses.
	quiet func()
}

func serveChanges(t *testing.T, changes ...v1alpha1.Change) *changeServer {
	t.Helper()
	s := &changeServer{changes: changes}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *changeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		reply(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/api/v1":
		reply(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", ShortNames: []string{"cm"}, Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"get"}},
				{Name: "namespaces", ShortNames: []string{"ns"}, Kind: "Namespace", Verbs: metav1.Verbs{"get"}},
			},
		})
	case "/apis":
		reply(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}})
	case "/apis/configbutler.ai/v1alpha1/namespaces/shop/changes", "/apis/configbutler.ai/v1alpha1/changes":
		if r.URL.Query().Get("watch") != "" {
			s.watch(w, r)
			return
		}
		s.list(w, r)
	default:
		s.object(w, r.URL.Path)
	}
}

// object responds with the metadata of an object, or with a list of it.
func (s *changeServer) object(w http.ResponseWriter, path string) {
	of := func(name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		}
	}
	if names, ok := s.names[path]; ok {
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range names {
			list.Items = append(list.Items, of(name))
		}
		reply(w, list)
		return
	}
	at := strings.LastIndex(path, "/")
	switch names, ok := s.names[path[:at]]; {
	case !ok && strings.HasSuffix(path, "/changes"):
		reply(w, v1alpha1.ChangeList{TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "ChangeList"}})
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case slices.Contains(names, path[at+1:]):
		reply(w, of(path[at+1:]))
	default:
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, path[at+1:]))
	}
}

// TestLogOfNothing checks that a misspelt name is told from an object without changes.
func TestLogOfNothing(t *testing.T) {
	const namespaces, configMaps = "/api/v1/namespaces", "/api/v1/namespaces/shop/configmaps"
	others := map[string][]string{namespaces: {"shop", "teams"}, configMaps: {"cart", "note"}}
	const noneInShop = "No changes found in namespace shop within 24h. --since goes back further\n"
	const ofNamespace = "Who created or deleted the namespace itself: kubectl slipstream log namespace/shop\n"
	deleted := logged("c1", 50*time.Hour)
	for name, test := range map[string]struct {
		args    []string
		names   map[string][]string
		changes []v1alpha1.Change
		notes   string
	}{
		"a misspelt namespace":              {[]string{"-n", "shpo"}, others, nil, "Neither the namespace shpo nor a change in it exists\nDid you mean \"shop\"?\n"},
		"a type in a misspelt namespace":    {[]string{"cm", "-n", "shpo"}, others, nil, "Neither the namespace shpo nor a change in it exists\nDid you mean \"shop\"?\n"},
		"a misspelt object":                 {[]string{"cm/crat", "-n", "shop"}, others, nil, "Neither configmaps/crat nor a change of it exists in the namespace shop\nDid you mean \"cart\"?\n"},
		"an object like no other":           {[]string{"cm/wonderful", "-n", "shop"}, others, nil, "Neither configmaps/wonderful nor a change of it exists in the namespace shop\n"},
		"a misspelt object without one":     {[]string{"ns/shpo"}, others, nil, "Neither namespaces/shpo nor a change of it exists\nDid you mean \"shop\"?\n"},
		"an object without changes":         {[]string{"cm/cart", "-n", "shop"}, others, nil, noneInShop},
		"a namespace without changes":       {[]string{"-n", "shop"}, others, nil, noneInShop + ofNamespace},
		"a deleted object":                  {[]string{"cm/note", "-n", "shop"}, map[string][]string{namespaces: {"shop"}, configMaps: {}}, []v1alpha1.Change{deleted}, noneInShop},
		"a deleted object, of another user": {[]string{"cm/note", "-n", "shop", "--since=0", "--author=joe"}, map[string][]string{configMaps: {}}, []v1alpha1.Change{deleted}, ""},
		"a deleted namespace":               {[]string{"-n", "shop"}, map[string][]string{namespaces: {}}, []v1alpha1.Change{deleted}, noneInShop + ofNamespace},
		"what may not be read":              {[]string{"cm/crat", "-n", "shop"}, nil, nil, noneInShop},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveChanges(t, test.changes...)
			s.names = test.names
			out, notes, err := s.call(t.Context(), t, append([]string{"log"}, test.args...)...)
			if test.notes == "" {
				if err != nil || strings.Contains(notes, "Neither") {
					t.Errorf("%v, printed %q", err, notes)
				}
				return
			}
			if err != nil || out != "" || notes != test.notes {
				t.Errorf("%v, printed %q and %q, want %q", err, out, notes, test.notes)
			}
		})
	}
}

func (s *changeServer) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if s.watched.Load() > 0 {
		s.changes = s.later
	}
	s.pages++
	at, _ := strconv.Atoi(query.Get("continue"))
	if at == 0 {
		s.selectors = append(s.selectors, query.Get("fieldSelector"))
	}
	list := v1alpha1.ChangeList{
		TypeMeta: metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "ChangeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "100"},
	}
	if at < len(s.changes) {
		list.Items = s.changes[at : at+1]
	}
	if at+1 < len(s.changes) {
		list.Continue = strconv.Itoa(at + 1)
	}
	reply(w, list)
}

// watch sends the next response, and blocks after the last.
func (s *changeServer) watch(w http.ResponseWriter, r *http.Request) {
	number := int(s.watched.Add(1)) - 1
	if number >= len(s.watches) {
		w.(http.Flusher).Flush()
		s.quiet()
		<-r.Context().Done()
		return
	}
	if s.watches[number] == nil {
		w.WriteHeader(http.StatusGone)
		reply(w, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusGone,
			Reason: metav1.StatusReasonExpired, Message: "too old resource version",
		})
		return
	}
	for _, change := range s.watches[number] {
		reply(w, map[string]any{"type": "ADDED", "object": change})
	}
}

func reply(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }

// logged returns a Change that was made some time ago.
func logged(name string, age time.Duration, edits ...func(*v1alpha1.Change)) v1alpha1.Change {
	change := v1alpha1.Change{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "Change"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "50"},
		Spec: v1alpha1.ChangeSpec{
			Object:    v1alpha1.ChangedObject{APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "shop", Name: "note"},
			Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(time.Now().Add(-age)),
			Author:  &v1alpha1.ChangeAuthor{Username: "jane@example.com", Signal: "Audit"},
			Commits: []v1alpha1.ChangeCommit{{SHA: "8548a580c1e5f6b7"}},
		},
	}
	for _, edit := range edits {
		edit(&change)
	}
	return change
}

func recordedAt(version string) func(*v1alpha1.Change) {
	return func(change *v1alpha1.Change) { change.ResourceVersion = version }
}

// call runs the plugin, and returns what it prints and its error.
func (s *changeServer) call(ctx context.Context, t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	streams, _, printed, noted := genericiooptions.NewTestIOStreams()
	command := app.NewCommand(streams)
	command.SetArgs(append(args, "--server", s.URL, "--kubeconfig", "/dev/null", "--cache-dir", t.TempDir()))
	err = command.ExecuteContext(ctx)
	return printed.String(), noted.String(), err
}

func TestLog(t *testing.T) {
	changes := []v1alpha1.Change{ // Their ages are shown alike for a minute.
		logged("c3", 12*time.Minute, func(change *v1alpha1.Change) {
			change.Spec.Fields, change.Spec.MoreFields = []string{"/data/a", "/data/b"}, 1
		}),
		logged("c2", 4*time.Hour, func(change *v1alpha1.Change) {
			change.Spec.Author, change.Spec.FieldManager, change.Spec.Operation = nil, "helm", v1alpha1.ChangeCreate
		}),
		logged("c1", 50*time.Hour, func(change *v1alpha1.Change) {
			change.Spec.Author, change.Spec.Commits, change.Spec.Object.Kind = nil, nil, ""
			change.Spec.Object.Name = "a\u202eb"
		}),
	}
	for name, test := range map[string]struct {
		args     []string
		out      string
		notes    string
		selector string
		// pages is the number of pages that are read, of a Change each. 0 is not checked.
		pages int
	}{
		"the newest one of all namespaces": {
			args: []string{"-A", "--limit", "1", "--oneline"}, out: "8548a58 12m jane@example.com Update shop ConfigMap/note\n", pages: 1,
		},
		"a day of all namespaces": {
			args: []string{"-A", "--since", "1d", "--limit", "2", "--oneline"}, pages: 2,
			out: "8548a58 12m jane@example.com Update shop ConfigMap/note\n8548a58 4h (helm) Create shop ConfigMap/note\n",
		},
		"all since a time": {
			args: []string{"-A", "--since", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "--oneline"}, pages: 2,
			out: "8548a58 12m jane@example.com Update shop ConfigMap/note\n",
		},
		"an hour of all namespaces": {
			args: []string{"-A", "--since", "1h", "--oneline"}, out: "8548a58 12m jane@example.com Update shop ConfigMap/note\n", pages: 2,
		},
		"a namespace": {
			args: []string{"-n", "shop"},
			out: "WHEN   WHO                WHAT             DID      FIELDS   COMMIT    CHANGE\n" +
				"12m    jane@example.com   ConfigMap/note   Update   /data/a +2   8548a58   c3\n" +
				"4h     (helm)             ConfigMap/note   Create   8548a58   c2\n",
		},
		"all that is kept, of all namespaces": {
			args: []string{"-A", "--since", "0"},
			out: "NAMESPACE   WHEN    WHO                WHAT                    DID      FIELDS   COMMIT    CHANGE\n" +
				"shop        12m     jane@example.com   ConfigMap/note          Update   /data/a +2   8548a58   c3\n" +
				"shop        4h      (helm)             ConfigMap/note          Create   8548a58   c2\n" +
				"shop        2d2h    <unknown>          configmaps/a\\u202eb     Update   <none>    c1\n",
		},
		"the newest one of an object": {
			args: []string{"cm/note", "-n", "shop", "--limit", "1", "--oneline", "--author", "jane@example.com", "--bypass"},
			out:  "8548a58 12m jane@example.com Update ConfigMap/note\n", selector: "author=jane@example.com,bypass=true,object.name=note,object.resource=configmaps",
		},
		"a type, and a name": {
			args: []string{"configmap", "note", "-n", "shop", "--since", "1h", "--oneline"},
			out:  "8548a58 12m jane@example.com Update ConfigMap/note\n", selector: "object.name=note,object.resource=configmaps",
		},
		"an object without a namespace": {
			args: []string{"ns/note", "-n", "other", "--oneline"}, selector: "object.name=note,object.resource=namespaces",
			out: "8548a58 12m jane@example.com Update shop ConfigMap/note\n8548a58 4h (helm) Create shop ConfigMap/note\n",
		},
		"nothing within the time": {
			args: []string{"-n", "shop", "--since", "1s"}, notes: "No changes found in namespace shop within 1s. --since goes back further\n" +
				"Who created or deleted the namespace itself: kubectl slipstream log namespace/shop\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveChanges(t, changes...)
			out, notes, err := s.call(t.Context(), t, append([]string{"log"}, test.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Join(strings.Fields(test.out), " "), strings.Join(strings.Fields(out), " ")); diff != "" || notes != test.notes {
				t.Errorf("output (-want +got), notes %q:\n%s", notes, diff)
			}
			if len(s.selectors) != 1 || test.selector != "" && s.selectors[0] != test.selector {
				t.Errorf("selectors = %q, want %q", s.selectors, test.selector)
			}
			if test.pages > 0 && s.pages != test.pages {
				t.Errorf("%d pages are read, want %d", s.pages, test.pages)
			}
		})
	}
}

func TestLogRejects(t *testing.T) {
	s := serveChanges(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a type that does not exist": {[]string{"wonders/a"}, "wonders is not a type of the cluster"},
		"a misspelt type":            {[]string{"confgmap/a"}, "confgmap is not a type of the cluster\nDid you mean \"configmap/a\"?"},
		"a name without a type":      {[]string{"cart"}, "cart is not a type of the cluster. Write an object as TYPE/NAME, such as deployment/cart"},
		"a word for a time":          {[]string{"--since", "yesterday"}, "--since is \"yesterday\": it is a duration such as 90m or 7d, an earlier time such as"},
		"a time to come":             {[]string{"--since", "2999-01-01T00:00:00Z"}, "an earlier time such as"},
		"kubectl's user":             {[]string{"--user", "jane"}, "kubectl slipstream log --author jane"},
		"no name":                    {[]string{"cm/"}, "the name is missing"},
		"two names":                  {[]string{"cm/a", "b"}, "write TYPE/NAME or TYPE NAME"},
		"a negative time":            {[]string{"--since", "-1h"}, `--since is "-1h"`},
		"a negative limit":           {[]string{"--limit", "-1"}, "--limit is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, _, err := s.call(t.Context(), t, append([]string{"log", "-n", "shop"}, test.args...)...); err == nil ||
				!strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("error %v, output %q, want %q", err, out, test.want)
			}
		})
	}
}

// TestLogWithoutServer says that the types cannot be read, not that one does not exist.
func TestLogWithoutServer(t *testing.T) {
	s := serveChanges(t)
	s.Close()
	_, _, err := s.call(t.Context(), t, "log", "-n", "shop", "cm/note")
	if err == nil || !strings.HasPrefix(err.Error(), "look for the type cm in the cluster: ") || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("error %v", err)
	}
}

// TestLogWatch has a watch that the server ends, and one whose resourceVersion has expired.
func TestLogWatch(t *testing.T) {
	s := serveChanges(t, logged("c1", time.Minute))
	s.watches = [][]v1alpha1.Change{{logged("c2", 0, recordedAt("101"))}, nil, {logged("c4", 0, recordedAt("104"))}}
	// What is listed after the resourceVersion has expired.
	s.later = []v1alpha1.Change{logged("c3", time.Second, recordedAt("103")), logged("c2", time.Second, recordedAt("101")), logged("c1", time.Minute)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.quiet = cancel
	out, _, err := s.call(ctx, t, "log", "-n", "shop", "-w")
	if !errors.Is(err, context.Canceled) || app.ExitCode(err) != 130 {
		t.Errorf("error %v, want that of an interruption", err)
	}
	var names []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		names = append(names, fields[len(fields)-1])
	}
	if got, want := fmt.Sprint(names), "[CHANGE c1 c2 c3 c4]"; got != want {
		t.Errorf("printed %s, want %s:\n%s", got, want, out)
	}
}
