// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// statusColumns are the columns that the server has, as far as status reads them.
var statusColumns = map[string][]string{
	"appcatalogs":            {"Name", "Revision", "Ready", "Reason", "State"},
	"environments":           {"Name", "Catalog", "Auto", "Namespace", "State", "Revision", "Ready", "Offered", "Waits-For", "Reason"},
	"gitdestinations":        {"Name", "Ready", "Reason", "Message"},
	"gitdestinationstatuses": {"Name", "Commit", "State"},
	"syncpipelines":          {"Name", "Ready", "Reason", "State"},
}

// tableServer serves tables of objects as an API server does.
type tableServer struct {
	*httptest.Server
	// tables are those of lists, by path below the version.
	tables map[string]*metav1.Table
	// refused are the paths that the user may not list.
	refused []string
	// events are those of watches, by path. The first watch sends them, and each waits then.
	events map[string][]metav1.WatchEvent
	// later are the tables of lists after the first watch.
	later map[string]*metav1.Table

	lock     sync.Mutex
	requests []string
}

func serveTables(t *testing.T, tables map[string]*metav1.Table) *tableServer {
	t.Helper()
	s := &tableServer{tables: tables, events: map[string][]metav1.WatchEvent{}, later: map[string]*metav1.Table{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *tableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.TrimPrefix(r.URL.Path, "/apis/configbutler.ai/v1alpha1/")
	s.lock.Lock()
	s.requests = append(s.requests, path+"?"+r.URL.Query().Get("labelSelector"))
	events := s.events[path]
	if r.URL.Query().Get("watch") != "" {
		delete(s.events, path)
		if later := s.later[path]; later != nil {
			s.tables[path] = later
		}
	}
	table, found := s.tables[path]
	s.lock.Unlock()
	resource := path[strings.LastIndex(path, "/")+1:]
	for _, refused := range s.refused {
		if refused == path {
			failure(w, apierrors.NewForbidden(v1alpha1.Resource(resource), "", io.EOF))
			return
		}
	}
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "as=Table"):
		http.Error(w, "whole objects are downloaded", http.StatusNotAcceptable)
	case r.URL.Query().Get("watch") != "":
		for _, event := range events {
			reply(w, event)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case found:
		reply(w, table)
	case statusColumns[resource] != nil:
		reply(w, tableOf(resource))
	default:
		failure(w, apierrors.NewNotFound(v1alpha1.Resource("things"), path))
	}
}

func failure(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.WriteHeader(int(status.Code))
	reply(w, status)
}

// tableOf returns the table of a resource. Each row is the namespace, the labels if there are any, and the cells.
func tableOf(resource string, rows ...[]any) *metav1.Table {
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"},
	}
	for _, name := range statusColumns[resource] {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, row := range rows {
		object := metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Namespace: row[0].(string), Name: row[1].(string), ResourceVersion: "7"},
		}
		raw, _ := json.Marshal(object)
		table.Rows = append(table.Rows, metav1.TableRow{Cells: row[1:], Object: runtime.RawExtension{Raw: raw}})
	}
	return table
}

func eventOf(kind string, table *metav1.Table) metav1.WatchEvent {
	raw, _ := json.Marshal(table)
	return metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}
}

// call runs the plugin, and returns what it prints, its exit code and its error.
func (s *tableServer) call(ctx context.Context, args ...string) (out, notes string, code int, err error) {
	streams, _, printed, said := genericiooptions.NewTestIOStreams()
	command := app.NewCommand(streams)
	command.SetArgs(append(args, "--server", s.URL, "--kubeconfig", os.DevNull))
	err = command.ExecuteContext(ctx)
	return printed.String(), said.String(), app.ExitCode(err), err
}

// inTeams has one object of each state.
func inTeams() map[string]*metav1.Table {
	return map[string]*metav1.Table{
		"namespaces/teams/appcatalogs": tableOf("appcatalogs",
			[]any{"teams", "shop", 42, "True", "Succeeded", "Up to date"}, []any{"teams", "old", 3, "False", "SourceNotFound", "The namespace old does not exist"}),
		"namespaces/teams/environments": tableOf("environments",
			[]any{"teams", "alice", "shop", "no", "shop-alice", "3 workloads changed", 41, "3/3", 42, "you", "Succeeded"},
			[]any{"teams", "bob", "shop", "yes", "shop-bob", "Held: window opens 18:00", 41, "3/3", 42, "window", "Succeeded"},
			[]any{"teams", "fix-17", "shop", "no", "shop-fix-17", "Conflict: 2 fields", 40, "3/3", 42, "you", "FieldsChangedTwice"},
			[]any{"teams", "new", "platform/web", "no", "web-new", "Not synced yet", 0, "<none>", 2, "you", "NeverSynced"},
			[]any{"teams", "prod", "shop", "yes", "shop-prod", "Synced", 42, "3/3", 42, "<none>", "Succeeded"}),
		"namespaces/platform/appcatalogs/web": tableOf("appcatalogs", []any{"platform", "web", 2, "True", "Succeeded", "Up to date"}),
		"namespaces/teams/gitdestinations": tableOf("gitdestinations",
			[]any{"teams", "main", "True", "Succeeded", "Mirrored"}, []any{"teams", "unseen", "Unknown", "<none>", "Waiting for the repository"}),
		"namespaces/teams/gitdestinationstatuses": tableOf("gitdestinationstatuses", []any{"teams", "main", "4f2c9e1", "Up to date"}),
	}
}

const statusOfTeams = `NAME                   STATE                             REV       AUTO  WAITS FOR
catalog/platform/web   Up to date                        r2
` + "`- environment/new     Not synced yet                    ->r2      no    you\n" + `catalog/old            The namespace old does not exist  r3
catalog/shop           Up to date                        r42
|- environment/alice   3 workloads changed               r41->r42  no    you
|- environment/bob     Held: window opens 18:00          r41->r42  yes   window
|- environment/fix-17  Conflict: 2 fields                r40->r42  no    you
` + "`- environment/prod    Synced                            r42       yes\n" + `gitdestination/main    Up to date                        4f2c9e1
gitdestination/unseen  Waiting for the repository
`

func TestStatus(t *testing.T) {
	s := serveTables(t, inTeams())
	out, notes, code, err := s.call(t.Context(), "status", "-n", "teams")
	if err != nil || code != 0 || notes != "" {
		t.Fatal(code, notes, err)
	}
	if diff := cmp.Diff(statusOfTeams, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// TestStatusIsNarrow checks that only STATE is cut.
func TestStatusIsNarrow(t *testing.T) {
	t.Setenv("COLUMNS", "66")
	s := serveTables(t, inTeams())
	out, _, _, err := s.call(t.Context(), "status", "-n", "teams")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"|- environment/bob     Held: window ...  r41->r42  yes   window\n", "catalog/old            The namespace...  r3\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if len(line) > 67 {
			t.Errorf("%d characters: %s", len(line)-1, line)
		}
	}
	wide, _, _, err := s.call(t.Context(), "status", "-n", "teams", "-o", "wide")
	if err != nil || !strings.Contains(wide, "Held: window opens 18:00          r41->r42  yes   window     3/3      Succeeded           shop-bob\n") {
		t.Errorf("wide: %v\n%s", err, wide)
	}
}

func TestStatusOfAllNamespaces(t *testing.T) {
	s := serveTables(t, map[string]*metav1.Table{
		"appcatalogs": tableOf("appcatalogs", []any{"a", "shop", 1, "True", "Succeeded", "Up to date"}),
		"environments": tableOf("environments",
			[]any{"a", "one", "shop", "no", "x", "Synced", 1, "1/1", 1, "<none>", "Succeeded"},
			[]any{"b", "two", "a/shop", "no", "y", "Synced", 1, "1/1", 1, "<none>", "Succeeded"},
			[]any{"b", "lost", "gone", "no", "z", "Stalled: no catalog", 0, "<none>", 0, "catalog", "CatalogNotFound"}),
		"syncpipelines": tableOf("syncpipelines", []any{"", "index", "True", "Succeeded", "12 waiting"}),
	})
	out, _, code, err := s.call(t.Context(), "status", "-A")
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	want := "NAMESPACE  NAME                 STATE                REV  AUTO  WAITS FOR\n" +
		"a          catalog/shop         Up to date           r1\n" +
		"a          |- environment/one   Synced               r1   no\n" +
		"b          `- environment/two   Synced               r1   no\n" +
		"b          catalog/gone\n" +
		"b          `- environment/lost  Stalled: no catalog       no    catalog\n" +
		"           syncpipeline/index   12 waiting\n"
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	names, _, _, err := s.call(t.Context(), "status", "-A", "-o", "name")
	if want := "appcatalog.configbutler.ai/shop\nenvironment.configbutler.ai/one\nenvironment.configbutler.ai/two\n" +
		"environment.configbutler.ai/lost\nsyncpipeline.configbutler.ai/index\n"; err != nil || names != want {
		t.Errorf("names: %v\n%s", err, names)
	}
}

func TestStatusAsData(t *testing.T) {
	s := serveTables(t, inTeams())
	out, _, _, err := s.call(t.Context(), "status", "-n", "teams", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 10 {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]any{
		"kind": "Environment", "namespace": "teams", "name": "fix-17", "state": "Conflict: 2 fields", "inSync": false, "catalog": "teams/shop",
		"reason": "FieldsChangedTwice", "revision": 40.0, "offered": 42.0, "auto": "no", "waitsFor": "you", "targetNamespace": "shop-fix-17",
	}
	if diff := cmp.Diff(want, list.Items[6]); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	text, _, _, err := s.call(t.Context(), "status", "-n", "teams", "-o", "yaml")
	if err != nil || !strings.Contains(text, "  kind: Environment\n  name: prod\n") {
		t.Errorf("YAML: %v\n%s", err, text)
	}
}

// TestStatusOfLabels checks that the catalogs of selected environments are shown, and no others.
func TestStatusOfLabels(t *testing.T) {
	s := serveTables(t, inTeams())
	out, _, _, err := s.call(t.Context(), "status", "-n", "teams", "-l", "team=a")
	if err != nil || strings.Contains(out, "catalog/old") || !strings.Contains(out, "catalog/shop") {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, request := range s.requests {
		labelled := strings.HasSuffix(request, "?team=a")
		if unlabelled := strings.Contains(request, "appcatalogs") || strings.Contains(request, "statuses"); labelled == unlabelled {
			t.Errorf("requested %s", request)
		}
	}
}

func TestStatusEnds(t *testing.T) {
	inSync := map[string]*metav1.Table{
		"namespaces/teams/environments": tableOf("environments",
			[]any{"teams", "prod", "shop", "no", "x", "Synced", 1, "1/1", 1, "<none>", "Succeeded"}),
	}
	old := tableOf("environments")
	old.ColumnDefinitions = old.ColumnDefinitions[:7]
	all := []string{
		"namespaces/teams/appcatalogs", "namespaces/teams/environments", "namespaces/teams/gitdestinations",
		"namespaces/teams/gitdestinationstatuses",
	}
	tests := map[string]struct {
		tables  map[string]*metav1.Table
		refused []string
		args    []string
		code    int
		out     string
		note    string
		problem string
	}{
		"in sync":                    {tables: inSync, args: []string{"--exit-code"}, out: "`- environment/prod  Synced  r1   no\n"},
		"not in sync":                {tables: inTeams(), args: []string{"--exit-code"}, code: 1, out: "Conflict", problem: "there are differences"},
		"not in sync, and not asked": {tables: inTeams(), out: "Conflict"},
		"in sync, but not all is known": {
			tables: inSync, refused: all[:1], args: []string{"--exit-code"}, code: 5, out: "environment/prod", problem: "--exit-code: not everything is known: ",
			note: "Not shown, because you may not list them in namespace teams: appcatalogs\n",
		},
		"nothing matches": {
			args: []string{"--exit-code", "-l", "team=typo"}, code: 2, problem: "--exit-code: nothing matches, so nothing is known to be in sync",
			note: "No catalogs, environments or destinations found in namespace teams\n",
		},
		"nothing":          {note: "No catalogs, environments or destinations found in namespace teams\n"},
		"nothing anywhere": {args: []string{"-A"}, note: "No catalogs, environments or destinations found in any namespace\n"},
		"no permission for some": {
			tables: inTeams(), refused: all[:1], out: "catalog/shop\n|- environment/alice",
			note: "Not shown, because you may not list them in namespace teams: appcatalogs\n",
		},
		"no permission":      {refused: all, code: 5, problem: "forbidden"},
		"another format":     {args: []string{"-o", "xml"}, code: 2, problem: `--output is "xml": it is json, yaml, name or wide`},
		"a watch as JSON":    {args: []string{"-o", "json", "-w"}, code: 2, problem: "--output is json: with --watch it is wide, or absent"},
		"a wrong selector":   {args: []string{"-l", "=="}, code: 2, problem: "--selector: "},
		"a watch that exits": {args: []string{"-w", "--exit-code"}, code: 2, problem: "none of the others can be"},
		"an argument":        {args: []string{"alice"}, code: 2, problem: "unknown command"},
		"an old server": {
			tables: map[string]*metav1.Table{"namespaces/teams/environments": old}, code: 2,
			problem: "the server is older than the plugin: its tables of environments have no column Offered",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serveTables(t, tt.tables)
			s.refused = tt.refused
			out, notes, code, err := s.call(t.Context(), append([]string{"status", "-n", "teams"}, tt.args...)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("ends with %d: %v", code, err)
			}
			if !printed(out, tt.out) || notes != tt.note {
				t.Errorf("noted %q, and printed:\n%s", notes, out)
			}
		})
	}
}

// printed reports whether a text has a part, or is empty if the part is.
func printed(text, part string) bool {
	return strings.Contains(text, part) && (part != "" || text == "")
}

// lines is a writer that ends a test when it has got a number of lines.
type lines struct {
	text strings.Builder
	left int
	end  func()
}

func (l *lines) Write(data []byte) (int, error) {
	l.text.Write(data)
	if l.left -= strings.Count(string(data), "\n"); l.left == 0 {
		l.end()
	}
	return len(data), nil
}

// expired ends a watch, so that the objects are listed again.
func expired() metav1.WatchEvent {
	status := apierrors.NewResourceExpired("too old").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	raw, _ := json.Marshal(status)
	return metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: raw}}
}

// follow runs status -w until it has printed a number of lines, and returns them with single spaces.
func (s *tableServer) follow(t *testing.T, number int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams, _, _, said := genericiooptions.NewTestIOStreams()
	out := &lines{left: number, end: cancel}
	streams.Out = out
	command := app.NewCommand(streams)
	command.SetArgs([]string{"status", "-w", "-n", "teams", "--server", s.URL, "--kubeconfig", os.DevNull})
	if err := command.ExecuteContext(ctx); app.ExitCode(err) != 130 {
		t.Errorf("ends with %v: %s", err, said)
	}
	return regexp.MustCompile(" +").ReplaceAllString(out.text.String(), " ")
}

// TestStatusFollows checks that piped output gets a line for each change that is visible, also after events have expired.
func TestStatusFollows(t *testing.T) {
	path := "namespaces/teams/environments"
	synced := []any{"teams", "one", "shop", "no", "x", "Synced", 1, "1/1", 1, "<none>", "Succeeded"}
	changed := []any{"teams", "one", "shop", "no", "x", "1 workload changed", 1, "1/1", 2, "you", "Succeeded"}
	s := serveTables(t, map[string]*metav1.Table{path: tableOf("environments", synced)})
	headless := tableOf("environments", changed)
	headless.ColumnDefinitions = nil
	s.events[path] = []metav1.WatchEvent{
		eventOf("MODIFIED", tableOf("environments", synced)), eventOf("MODIFIED", headless), eventOf("DELETED", headless),
		eventOf("BOOKMARK", tableOf("environments", changed)), expired(),
	}
	want := `NAME STATE REV AUTO WAITS FOR
catalog/shop
` + "`- environment/one Synced r1 no\n" + `environment/one 1 workload changed r1->r2 no you
environment/one Deleted
environment/one Synced r1 no
`
	if diff := cmp.Diff(want, s.follow(t, 6)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// TestStatusKeepsForeignCatalogs checks that a catalog of another namespace is still shown after the catalogs were listed again.
func TestStatusKeepsForeignCatalogs(t *testing.T) {
	path := "namespaces/teams/appcatalogs"
	s := serveTables(t, inTeams())
	s.events[path] = []metav1.WatchEvent{expired()}
	s.later[path] = tableOf("appcatalogs", []any{"teams", "shop", 43, "True", "Succeeded", "Up to date"})
	printed := s.follow(t, strings.Count(statusOfTeams, "\n")+2)
	if want := "catalog/shop Up to date r43\ncatalog/old Deleted\n"; !strings.HasSuffix(printed, want) {
		t.Errorf("printed:\n%s", printed)
	}
}
