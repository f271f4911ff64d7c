// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const alice = `"resource":"environments","namespace":"teams","name":"alice"`

// TestRun runs commands as the user would, with what they print.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		request, object string
		response        any
		command, out    string
		write           string
		exit            int
		failure         string
	}{
		"unpin": {
			request: `{"action":"unpin",` + alice + `}`, object: "namespaces/teams/environments/alice",
			response: environment(map[string]any{"pinnedRevision": 3}, nil),
			command:  "kubectl slipstream unpin alice -n teams", out: "environment/alice unpinned\n",
			write: `PATCH namespaces/teams/environments/alice  {"spec":{"pinnedRevision":null}}`,
		},
		"preview": {
			request: `{"action":"unpin",` + alice + `,"preview":true}`, object: "namespaces/teams/environments/alice",
			response: environment(map[string]any{"pinnedRevision": 3}, nil),
			command:  "kubectl slipstream unpin alice --dry-run=server -n teams", out: "environment/alice unpinned (dry run)\n",
			write: `PATCH namespaces/teams/environments/alice All {"spec":{"pinnedRevision":null}}`,
		},
		"catalog": {
			request: `{"action":"unpin","resource":"appcatalogs","namespace":"teams","name":"shop"}`, object: "namespaces/teams/appcatalogs/shop",
			response: environment(map[string]any{}, nil), command: "kubectl slipstream unpin catalog/shop -n teams", out: "catalog/shop was not pinned\n",
		},
		"pipeline": {
			request: `{"action":"suspend","resource":"syncpipelines","name":"index"}`, object: "syncpipelines/index",
			response: environment(map[string]any{}, nil), command: "kubectl slipstream suspend syncpipeline/index",
			out: "syncpipeline/index suspended\n", write: `PATCH syncpipelines/index  {"spec":{"suspend":true}}`,
		},
		"forbidden": {
			request: `{"action":"dismiss",` + alice + `}`, object: "namespaces/teams/environments/alice/dismiss",
			response: apierrors.NewForbidden(v1alpha1.Resource("environments"), "alice", fmt.Errorf("not you")),
			command:  "kubectl slipstream dismiss alice -n teams", exit: 5, failure: `environments.configbutler.ai "alice" is forbidden: not you`,
			write: "POST namespaces/teams/environments/alice/dismiss  ",
		},
		"escape sequences": {
			request: `{"action":"dismiss",` + alice + `}`, object: "namespaces/teams/environments/alice/dismiss",
			response: map[string]any{
				"apiVersion": "configbutler.ai/v1alpha1", "kind": "Dismissal", "metadata": map[string]any{"name": "alice"},
				"status": map[string]any{"accepted": true, "message": "Dismissed \x1b[31mred"},
			},
			command: "kubectl slipstream dismiss alice -n teams", out: `environment/alice: Dismissed \u001b[31mred` + "\n",
			write: "POST namespaces/teams/environments/alice/dismiss  ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.objects[test.object] = test.response
			p := login(t, c, "--allow-changes")
			command, out, end := p.run(t, test.request)
			if want := test.command + " --kubeconfig=KUBECONFIG --server=SERVER"; command != want {
				t.Errorf("the command is %q, want %q", command, want)
			}
			if out != test.out {
				t.Errorf("printed %q, want %q", out, test.out)
			}
			if *end.Exit != test.exit || !strings.HasPrefix(end.Error, test.failure) || (end.Error == "") != (test.failure == "") {
				t.Errorf("ended with %d %q, want %d %q", *end.Exit, end.Error, test.exit, test.failure)
			}
			written := strings.Join(c.written(), "\n")
			if !strings.HasPrefix(written, test.write) || (written == "") != (test.write == "") {
				t.Errorf("requested %q, want %q", written, test.write)
			}
		})
	}
}

// TestReadOnly checks that nothing is written until the user allows it.
func TestReadOnly(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/teams/environments/alice"] = environment(map[string]any{"pinnedRevision": 3}, nil)
	p := login(t, c)
	for path, body := range map[string]string{
		"/api/run":   `{"action":"unpin",` + alice + `}`,
		"/api/patch": `{` + alice + `,"resourceVersion":"7","spec":{"autoSync":true}}`,
	} {
		status, text := p.call(t, path, body)
		if status != http.StatusForbidden || !strings.Contains(text, "Switch on Allow changes") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	if written := c.written(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
	p.read(t, "/api/allow", `{"allow":true}`, &struct{}{})
	if status, text := p.call(t, "/api/run", `{"action":"unpin",`+alice+`}`); status != http.StatusOK || len(c.written()) != 1 {
		t.Errorf("after it was allowed: status %d: %s", status, text)
	}
}

// TestArguments checks that no name and no option becomes another flag or argument.
func TestArguments(t *testing.T) {
	c := newCluster(t)
	p := login(t, c, "--allow-changes")
	for _, request := range []string{
		`{"action":"sync","resource":"environments","namespace":"teams","name":"--all"}`,
		`{"action":"sync","resource":"environments","namespace":"teams","name":"catalog/shop"}`,
		`{"action":"sync","resource":"environments","namespace":"-A","name":"alice"}`,
		`{"action":"sync","resource":"environments","namespace":"","name":"alice"}`,
		`{"action":"sync","resource":"environments","namespace":"teams","name":"ali\nce"}`,
		`{"action":"sync","resource":"environments","namespace":"teams","name":"` + strings.Repeat("a", 254) + `"}`,
		`{"action":"delete",` + alice + `}`,
		`{"action":"pause",` + alice + `}`,
		`{"action":"secretdiff",` + alice + `}`,
		`{"action":"mcp",` + alice + `}`,
		`{"action":"save",` + alice + `}`,
		`{"action":"sync",` + alice + `,"options":{"action":"everything"}}`,
		`{"action":"sync",` + alice + `,"options":{"action":"all --force"}}`,
		`{"action":"sync",` + alice + `,"options":{"workloads":["deployment/web,deployment/db"]}}`,
		`{"action":"sync",` + alice + `,"options":{"workloads":["--force"]}}`,
		`{"action":"sync",` + alice + `,"options":{"workloads":[` + strings.Repeat(`"deployment/a",`, 200) + `"deployment/a"]}}`,
		`{"action":"sync",` + alice + `,"options":{"revision":3}}`,
		`{"action":"sync",` + alice + `,"options":{"kubeconfig":"/etc/passwd"}}`,
		`{"action":"rollback",` + alice + `,"options":{"revision":-1}}`,
		`{"action":"resolve",` + alice + `,"options":{"choices":[` + strings.Repeat(`{"field":"all","take":"ours"},`, 200) + `{"field":"all","take":"ours"}]}}`,
		`{"action":"resolve",` + alice + `,"options":{"choices":[{"field":"--yes","take":"ours"}]}}`,
		`{"action":"resolve",` + alice + `,"options":{"choices":[{"field":"/spec/replicas","take":"mine"}]}}`,
		`{"action":"explain-drift",` + alice + `,"options":{"object":"--context=x/y"}}`,
		`{"action":"explain-drift",` + alice + `,"options":{"object":"web"}}`,
		`{"action":"pause","resource":"appcatalogs","namespace":"teams","name":"shop","options":{"for":"-2h"}}`,
		`{"action":"pause","resource":"appcatalogs","namespace":"teams","name":"shop","options":{"for":"2h --until=x"}}`,
		`{"action":"blame","resource":"objects","namespace":"teams"}`,
		`{"action":"sync-pipeline","resource":"syncpipelines","name":"index","options":{"scope":"none"}}`,
	} {
		if status, body := p.call(t, "/api/run", request); status != http.StatusBadRequest {
			t.Errorf("%.120s: status %d: %s", request, status, body)
		}
	}
	if written := c.written(); len(written) > 0 {
		t.Errorf("written: %q", written)
	}
}

// TestCommandLine shows commands with their options as a user would paste them.
func TestCommandLine(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/shop/changes/a-1"] = map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": "Change", "metadata": map[string]any{"namespace": "shop", "name": "a-1"},
		"spec": map[string]any{"object": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "resource": "deployments", "namespace": "shop", "name": "web"}},
	}
	p := login(t, c, "--allow-changes", "--as", "o'neil")
	for request, want := range map[string]string{
		`{"action":"sync",` + alice + `,"options":{"action":"cluster","force":true,"workloads":["deployment/web","cronjob/a"]}}`: "sync alice --action=cluster " +
			"--force --workloads=deployment/web --workloads=cronjob/a -n teams",
		`{"action":"resolve",` + alice + `,"options":{"choices":[{"field":"/spec/a[name=web]","take":"ours"},{"field":"all","take":"theirs"}]}}`: "resolve alice " +
			"'--keep=/spec/a[name=web]' --take=all -n teams",
		`{"action":"rollback",` + alice + `,"options":{"revision":6}}`:                                             "rollback alice --to=6 -n teams",
		`{"action":"pause","resource":"appcatalogs","namespace":"teams","name":"shop","options":{"for":"2h"}}`:     "pause shop --for=2h -n teams",
		`{"action":"sync","resource":"gitdestinations","namespace":"teams","name":"main","options":{"full":true}}`: "sync gitdestination/main --full -n teams",
		`{"action":"sync-pipeline","resource":"syncpipelines","name":"index","options":{"scope":"crds"}}`:          "sync-pipeline index --scope=crds",
		`{"action":"retry","resource":"syncstatuses","namespace":"teams","name":"shop-x7k2p"}`:                     "retry shop-x7k2p -n teams",
		`{"action":"dismiss","resource":"syncstatuses","namespace":"teams","name":"shop-x7k2p"}`:                   "dismiss syncstatus/shop-x7k2p -n teams",
		`{"action":"explain-drift",` + alice + `,"options":{"object":"deployment/web"}}`:                           "explain-drift alice deployment/web -n teams",
		`{"action":"blame","resource":"objects","namespace":"shop","options":{"object":"deployment/web"}}`:         "blame deployment/web -n shop",
		`{"action":"undo","resource":"changes","namespace":"shop","name":"a-1"}`:                                   "undo a-1 --yes -n shop",
		`{"action":"undo","resource":"changes","namespace":"shop","name":"a-1","preview":true}`:                    "undo a-1 --dry-run=server -n shop",
		`{"action":"restore","resource":"changes","namespace":"shop","name":"a-1","preview":true}`:                 "restore deployments.apps/web --to=shop/a-1 --dry-run=server -n shop",
		`{"action":"show","resource":"changes","namespace":"shop","name":"a-1"}`:                                   "show a-1 -n shop",
	} {
		command, _, end := p.run(t, request)
		if want = "kubectl slipstream " + want + ` '--as=o'\''neil' --kubeconfig=KUBECONFIG --server=SERVER`; command != want {
			t.Errorf("%s\nruns  %s\nwant  %s", request, command, want)
		}
		if strings.Contains(end.Error, "unknown flag") || strings.Contains(end.Error, "accepts") || strings.Contains(end.Error, c.URL) {
			t.Errorf("%s: %s", command, end.Error)
		}
	}
}

// TestPreviewedCommand shows the command that is run after a preview, which does not ask.
func TestPreviewedCommand(t *testing.T) {
	c := newCluster(t)
	p := login(t, c)
	for request, want := range map[string]string{
		`{"action":"undo","resource":"changes","namespace":"shop","name":"a-1","preview":true}`: "kubectl slipstream undo a-1 --yes -n shop",
		`{"action":"sync",` + alice + `,"options":{"force":true},"preview":true}`:               "kubectl slipstream sync alice --force -n teams",
		`{"action":"diff",` + alice + `}`:                                                       "",
	} {
		if want != "" {
			want += " --kubeconfig=KUBECONFIG --server=SERVER"
		}
		if m := p.stream(t, "/api/run", request).next(t); m == nil || m.Run != want {
			t.Errorf("%s\nwill run %+v\nwant     %s", request, m, want)
		}
	}
}

// TestNoTerminal leaves out what a command prints about the keys of a terminal while it waits.
func TestNoTerminal(t *testing.T) {
	c := newCluster(t)
	const records = "namespaces/teams/syncstatuses"
	c.objects[records] = map[string]any{"apiVersion": "configbutler.ai/v1alpha1", "kind": "SyncStatusList", "metadata": map[string]any{"resourceVersion": "7"}}
	c.objects["namespaces/teams/environments/alice/sync"] = map[string]any{
		"apiVersion": "configbutler.ai/v1alpha1", "kind": "SyncRequest", "metadata": map[string]any{"name": "alice"},
		"status": map[string]any{"accepted": true, "syncStatuses": []string{"alice-1"}},
	}
	p := login(t, c, "--allow-changes")
	run := p.stream(t, "/api/run", `{"action":"sync",`+alice+`}`)
	for path := ""; path != records; path = <-c.watched {
	}
	const record = `{"apiVersion":"configbutler.ai/v1alpha1","kind":"SyncStatus","metadata":{"namespace":"teams","name":"alice-1","resourceVersion":"8"%s},
		"spec":{"type":"Environment"},"status":{"state":"InProgress"}}`
	events := c.latest(records)
	events <- metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: fmt.Appendf(nil, record, "")}}
	events <- metav1.WatchEvent{Type: "BOOKMARK", Object: runtime.RawExtension{Raw: fmt.Appendf(nil, record, `,"annotations":{"k8s.io/initial-events-end":"true"}`)}}
	for m := run.next(t); m != nil; m = run.next(t) {
		if m.Note == "" {
			continue
		}
		if strings.Contains(m.Note, "Ctrl-C") {
			t.Errorf("noted %q", m.Note)
		}
		run.cancel() // It would wait until the sync has ended.
		return
	}
	t.Error("no progress was noted")
}

// TestEndOfRun ends a command when the page closes the request, and limits the number of commands.
func TestEndOfRun(t *testing.T) {
	c := newCluster(t)
	requested := make(chan struct{}, 10)
	ended := make(chan struct{}, 10)
	handler := c.Config.Handler
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/diff") {
			handler.ServeHTTP(w, r)
			return
		}
		requested <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	p := login(t, c)
	var runs []*stream
	for range 4 {
		runs = append(runs, p.stream(t, "/api/run", `{"action":"diff",`+alice+`}`))
		<-requested
	}
	if status, body := p.call(t, "/api/run", `{"action":"diff",`+alice+`}`); status != http.StatusTooManyRequests {
		t.Errorf("a fifth command: status %d: %s", status, body)
	}
	for _, run := range runs {
		run.cancel()
		<-ended
	}
}

// TestUnreachable ends a command without the address of the cluster if it does not respond.
func TestUnreachable(t *testing.T) {
	c := newCluster(t)
	p := login(t, c)
	c.Listener.Close() //nolint:errcheck // The cluster closes it again.
	c.CloseClientConnections()
	_, out, end := p.run(t, `{"action":"diff",`+alice+`}`)
	address := c.Listener.Addr().String()
	if *end.Exit != 2 || !strings.HasPrefix(end.Error, "The API server does not respond\n") || strings.Contains(out+end.Error, address) {
		t.Errorf("ended with %d %q after %q", *end.Exit, end.Error, out)
	}
	if status, body := p.call(t, "/api/object", `{`+alice+`}`); status != http.StatusBadGateway || strings.Contains(body, address) {
		t.Errorf("an object: status %d: %s", status, body)
	}
}

// TestContext checks that commands run in the context in which the page was opened, although another one is current by now.
func TestContext(t *testing.T) {
	c := newCluster(t)
	c.objects["namespaces/teams/environments/alice"] = environment(map[string]any{"pinnedRevision": 3}, nil)
	path := filepath.Join(t.TempDir(), "config")
	use := func(context string) {
		t.Helper()
		content := "apiVersion: v1\nkind: Config\ncurrent-context: " + context + "\nclusters:\n- {name: one, cluster: {server: '" + c.URL + "'}}\n" +
			"- {name: two, cluster: {server: 'http://127.0.0.1:1'}}\ncontexts:\n- {name: prod, context: {cluster: one}}\n- {name: other, context: {cluster: two}}\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use("prod")
	p := start(t, "--kubeconfig", path, "--allow-changes")
	p.login(t)
	if m := p.stream(t, "/api/stream", "{}").next(t); m == nil || m.Context != "prod" || m.Flags != "--kubeconfig=KUBECONFIG --context=prod" {
		t.Errorf("the first message is %+v", m)
	}
	use("other")
	command, out, end := p.run(t, `{"action":"unpin",`+alice+`}`)
	if *end.Exit != 0 || out != "environment/alice unpinned\n" || len(c.written()) != 1 {
		t.Errorf("ended with %d %q after %q", *end.Exit, end.Error, out)
	}
	if command != "kubectl slipstream unpin alice -n teams --kubeconfig=KUBECONFIG --context=prod" {
		t.Errorf("the command is %q", command)
	}
	// The same context leads to another cluster now: kind create cluster, for example, writes that.
	moved := strings.ReplaceAll(readFile(t, path), c.URL, "http://127.0.0.1:1")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(moved, "current-context: other", "current-context: prod")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, end := p.run(t, `{"action":"unpin",`+alice+`}`); *end.Exit != 0 || len(c.written()) != 2 {
		t.Errorf("after the cluster of the context has changed: ended with %d %q after %q", *end.Exit, end.Error, out)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, out, end := p.run(t, `{"action":"unpin",`+alice+`}`); *end.Exit != 2 || strings.Contains(out+end.Error, path) {
		t.Errorf("without a kubeconfig: ended with %d %q after %q", *end.Exit, end.Error, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
