// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/golden"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// commands is a namespace with an object of each kind that a command is about, and the users of the commands.
type commands struct {
	*fixture
	// mirror has the ConfigMaps of the team.
	mirror *mirrortest.Mirror
	// program is the path of the plugin.
	program string
	// nora has no permissions.
	nora *people.Person
	// unreachable is a kubeconfig of dave whose server does not listen.
	unreachable devcluster.Kubeconfig
	// folder and blue are {dir} and {blue} in command lines: a folder for files, and the Change of a ConfigMap.
	folder, blue string
}

// commandRow is a command line of the plugin. It is run by dave, then by nora, then without a server, and then with wrong names.
type commandRow struct {
	line string
	// golden is the name of the golden file. Defaults to the name of the command.
	golden string
	// given prepares the state that the line is about.
	given func(*commands, *testing.T)
	// code is the exit code.
	code int
	// byAdmin is set if dave may not do it. An administrator does it then.
	byAdmin bool
	// input is read by the command.
	input string
	// json is the kind in the output of -o json, or a field with a dot. jsonLine is the line for that, without -o json. Defaults to line.
	json, jsonLine string
	// wrong are lines with wrong names.
	wrong []string
	// denied are more lines that nora may not run.
	denied []string
	// table is set for lines of columns. They are also shown on a narrow terminal.
	table bool
	// lines is how many lines of the output are compared, 0 for all.
	lines int
	// local is set if the command does not need a server.
	local bool
	// free is set if the command may be run by everyone, also without a server. How it ends is in the golden file only.
	free bool
	// waits is set if the command prints progress while it waits, which differs in each run.
	waits bool
}

// commandTable has each command of the plugin at least once, in an order in which each finds the state that it is about.
var commandTable = []commandRow{
	// Without a server.
	{line: "help", local: true},
	{line: "options", local: true},
	{line: "completion bash", local: true, lines: 5},
	{line: "install-hooks --dir {dir}", local: true},
	{line: "mirror --to https://git.example.com/shop.git --secret git --types configmaps", local: true, json: "GitRepoConfig"},
	{line: "catalog shop --from shop --workloads deployment/api", local: true, json: "AppCatalog"},
	{line: "environment alice --catalog shop --target alice", local: true, json: "Environment"},
	{line: "pipeline index --to https://index.example.com", local: true, json: "SyncPipeline"},
	{line: "version --client", golden: "version-client", local: true},

	// Setup.
	{line: "version", free: true},
	{line: "check", json: ".results", free: true},
	{line: "webhook-config --dir {dir}/audit --address slipstream.example.com:443", golden: "webhook-config-denied", code: 5},
	{line: "webhook-config --dir {dir}/audit --address slipstream.example.com:443", byAdmin: true},
	{
		line: "notify test hook", byAdmin: true, json: "NotificationTest", jsonLine: "notify test hook --dry-run=server",
		wrong: []string{"notify test hok"}, denied: []string{"notify test hook --dry-run=server"},
	},
	{line: "notify test gone --event failed --title {{.Severity}}:{{.Name}}", golden: "notify-failed", byAdmin: true, code: 3},
	{line: "bootstrap flux --destination main", json: "GitRepository", wrong: []string{"bootstrap flux --destination mian"}},

	// History.
	{line: "log configmap/note", given: (*commands).changeNote, table: true},
	{line: "log configmap/note --oneline", golden: "log-oneline"},
	{line: "log configmap/note -p", golden: "log-patch"},
	{line: "show {blue}", json: "ChangeDiff"},
	{line: "blame configmap/note"},
	{line: "diff configmap/note --from {blue}^", golden: "diff-objects", code: 1},
	{line: "undo {blue}", golden: "undo-unconfirmed", code: 2},
	{line: "undo {blue} --yes", json: "ConfigMap", jsonLine: "undo {blue} --dry-run=server"},
	{line: "restore configmap/note --to {blue} --dry-run", golden: "restore-dry-run"},
	{line: "restore configmap/note --to {blue} --yes", json: "ConfigMap", jsonLine: "restore configmap/note --to {blue} --dry-run=server"},
	{line: "mcp", free: true, input: `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"},

	// Catalogs and environments.
	{line: "status", given: (*commands).restoredNote, json: ".items", table: true},
	{line: "status -l team=a --exit-code", golden: "status-exit-code", code: 1},
	{line: "dashboard --all-namespaces --no-open", code: 5}, // With the permission, it does not end.
	{line: "diff alice", golden: "diff-environment", code: 1, json: "EnvironmentDiff", wrong: []string{"diff alise"}},
	{line: "sync alice --dry-run", golden: "sync-dry-run"},
	{
		line: "sync alice", waits: true, json: "SyncRequest", jsonLine: "sync alice --dry-run=server",
		wrong: []string{"sync alise", "sync catalog/shpo", "sync gitdestination/mian"}, denied: []string{"sync catalog/shop", "sync gitdestination/main", "sync -l team=a"},
	},
	{line: "missing alice", given: (*commands).listNotCopied, byAdmin: true, wrong: []string{"missing alise"}},
	{line: "missing alice", golden: "missing-denied", code: 5},
	{
		line: "explain-drift alice deployment/api", given: (*commands).changeImage,
		wrong: []string{"explain-drift alise"},
	},
	{line: "secretdiff alice", byAdmin: true, code: 1, json: "EnvironmentDiff", wrong: []string{"secretdiff alise"}},
	{line: "secretdiff alice", golden: "secretdiff-denied", code: 5},
	{line: "dismiss alice", json: "Dismissal", jsonLine: "dismiss alice --dry-run=server", wrong: []string{"dismiss alise"}},
	{line: "undismiss alice", json: "Undismissal", jsonLine: "undismiss alice --dry-run=server", wrong: []string{"undismiss alise"}},
	{line: "rediscover alice", json: "Rediscovery", jsonLine: "rediscover alice --dry-run=server", wrong: []string{"rediscover alise"}},
	{line: "sync -l team=a", golden: "sync-selector", waits: true},
	{
		line: "rollback alice", waits: true, json: "Rollback", jsonLine: "rollback alice --dry-run=server",
		wrong: []string{"rollback alise", "rollback alise --to 1", "rollback catalog/shpo"}, denied: []string{"rollback alice --to 1"},
	},
	{
		line: "unpin alice", json: "Environment", jsonLine: "unpin alice --dry-run=server",
		wrong: []string{"unpin alise", "unpin catalog/shpo"},
	},
	{line: "resolve alice", wrong: []string{"resolve alise"}},
	{
		line: "retry environment/alice", code: 4, wrong: []string{"retry environment/alise", "retry catalog/shpo"},
		denied: []string{"retry alice-x"},
	},

	// Stop and start.
	{line: "pause shop", json: "AppCatalog", jsonLine: "pause shop --dry-run=server", wrong: []string{"pause shpo"}},
	{line: "sync catalog/shop", golden: "sync-paused", code: 4},
	{line: "resume shop", json: "AppCatalog", jsonLine: "resume shop --dry-run=server", wrong: []string{"resume shpo"}},
	{line: "sync catalog/shop", golden: "sync-catalog", waits: true},
	{line: "sync gitdestination/main", golden: "sync-gitdestination", waits: true},
	{
		line: "suspend main", json: "GitDestination", jsonLine: "suspend main --dry-run=server", wrong: []string{"suspend mian"},
		denied: []string{"suspend syncpipeline/commands"},
	},
	{line: "sync gitdestination/main", golden: "sync-suspended", code: 4},
	{line: "unsuspend main", json: "GitDestination", jsonLine: "unsuspend main --dry-run=server", wrong: []string{"unsuspend mian"}},
	{
		line: "sync-pipeline commands", byAdmin: true, waits: true, json: "PipelineSync",
		jsonLine: "sync-pipeline commands --dry-run=server", wrong: []string{"sync-pipeline comands"},
	},
}

// testCommands runs each command of the plugin, compares what it prints with a golden file, and shows how it ends without permissions,
// without a server, and with wrong names.
func (s *testCluster) testCommands(t *testing.T) {
	c := s.newCommands(t)
	for _, name := range c.commandNames(t) {
		if !slices.ContainsFunc(commandTable, func(row commandRow) bool { return row.name() == name }) {
			t.Errorf("the command %s is missing in the table", name)
		}
	}
	for _, row := range commandTable {
		t.Run(row.file(), func(t *testing.T) { c.testRow(t, row) })
	}
}

// name returns the name of the command.
func (r commandRow) name() string {
	name, _, _ := strings.Cut(r.line, " ")
	return name
}

// file returns the name of the golden file.
func (r commandRow) file() string {
	if r.golden != "" {
		return r.golden
	}
	return r.name()
}

// testRow runs the lines of a row. What is only refused is run before what changes the state.
func (c *commands) testRow(t *testing.T, row commandRow) {
	if row.given != nil {
		row.given(c, t)
	}
	user := c.dave
	if row.byAdmin {
		user = c.admin
	}
	var others strings.Builder
	if row.json != "" {
		line := row.line
		if row.jsonLine != "" {
			line = row.jsonLine
		}
		expectJSON(t, line, row.json, c.run(t, user, row, line+" -o json"))
	}
	if row.table {
		got := c.onTerminal(t, user, row.line)
		others.WriteString(c.section("on a terminal of 60 columns", row.line, got))
	}
	if !row.local && row.code == 0 || len(row.wrong) > 0 {
		others.WriteString(c.refusals(t, row, user))
	}
	got := c.run(t, user, row, row.line)
	expectPlain(t, row.line, got, row.table)
	if got.code != row.code {
		t.Errorf("%s ends with %d, want %d: %s%s", row.line, got.code, row.code, got.out, got.notes)
	}
	if row.lines > 0 {
		got.out = strings.Join(strings.SplitAfter(got.out, "\n")[:row.lines], "")
	}
	if row.waits && row.code == 0 {
		got.notes = ""
	}
	golden.Expect(t, filepath.Join("testdata", "commands", row.file()+".txt"), c.section("by "+user.Name, row.line, got)+others.String())
}

// refusals runs the lines of a row as nora, without a server, and with wrong names.
func (c *commands) refusals(t *testing.T, row commandRow, user *people.Person) string {
	t.Helper()
	var golden strings.Builder
	for _, line := range append([]string{row.line}, row.denied...) {
		got := c.run(t, c.nora, row, line)
		if !row.free {
			expectDenied(t, line, got)
		}
		golden.WriteString(c.section("without permissions", line, got))
	}
	got := c.runAs(t, c.unreachable, row, row.line)
	if !row.free {
		expectUnreached(t, row.line, got)
	}
	golden.WriteString(c.section("without a server", row.line, got))
	for _, line := range row.wrong {
		got := c.run(t, user, row, line)
		expectSuggestion(t, line, got)
		golden.WriteString(c.section("with a wrong name", line, got))
	}
	return golden.String()
}

// reporter is a workload of the source with an object that the server does not copy.
const reporter = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reporter}
spec:
  selector: {matchLabels: {app: reporter}}
  template:
    metadata: {labels: {app: reporter}}
    spec: {serviceAccountName: reporter, containers: [{name: main, image: 'shop/reporter:1'}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reporter}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: reporter, namespace: commands-production}]
---
`

// commandPipeline is a pipeline that sends the definitions to a receiver.
const commandPipeline = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: commands}
spec:
  instances: {enabled: false}
  sinks: [{name: index, http: {format: CloudEvents, url: %s}}]
`

// commandSinks are one whose receiver accepts messages, and one without a receiver.
const commandSinks = `
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: hook}
spec: {webhook: {url: %s, caBundle: %s}}
---
apiVersion: configbutler.ai/v1alpha1
kind: NotificationSink
metadata: {name: gone}
spec: {webhook: {url: "` + noServer + `/hooks"}}
`

// newCommands creates what the commands are about.
func (s *testCluster) newCommands(t *testing.T) *commands {
	t.Helper()
	c := &commands{fixture: s.newFixture(t, "commands", shop+reporter, workloads("api", "worker", "reporter")), nora: s.person(t, "nora")}
	c.program, c.unreachable, c.folder = s.plugin(t, s.dave).Program, unreachableServer(t, s.dave), t.TempDir()
	s.Apply(t, people.In(c.team, people.Sources, people.Server)+people.In(c.team, "edit", s.dave.Name)+
		people.Everywhere(people.Pipelines, people.Server))
	receiver := receivertest.New(t, v1alpha1.PipelineFormatCloudEvents)
	s.Apply(t, fmt.Sprintf(commandPipeline, receiver.URL))
	hook := notifytest.Webhook(t)
	s.ApplyIn(t, c.team, fmt.Sprintf(commandSinks, hook.URL, base64.StdEncoding.EncodeToString(hook.CABundle())))
	t.Cleanup(func() {
		s.DeleteIfExist(t, "", "pipe/commands", "clusterrolebinding/"+people.Server+"-"+people.Pipelines)
	})
	c.mirror = s.NewMirror(t, c.team)
	c.mirror.Watch(t, "settings", "configmaps")
	c.mustApply(t, "alice")
	s.dave.Run(t, "label", "-n", c.team, "envt/alice", "team=a")
	return c
}

// changeNote has dave create a ConfigMap and change it twice.
func (c *commands) changeNote(t *testing.T) {
	c.dave.Run(t, "create", "configmap", "note", "-n", c.team, "--from-literal=color=red", "--from-literal=size=1")
	c.change(t, "note", v1alpha1.ChangeCreate)
	c.dave.Run(t, "patch", "configmap", "note", "-n", c.team, "-p", `{"data":{"color":"blue"}}`)
	c.blue = c.change(t, "note", v1alpha1.ChangeUpdate)
}

// restoredNote waits until what was restored has been pushed.
func (c *commands) restoredNote(t *testing.T) {
	c.mirror.Holds(t, c.mirror.ConfigMapPath("note"), "color: blue\n")
	c.mirror.Settled(t)
}

// listNotCopied waits until the environment lists what the server does not copy.
func (c *commands) listNotCopied(t *testing.T) { c.expectNotCopied(t, "RoleBinding reporter") }

// changeImage has ann change a workload and a Secret of the source.
func (c *commands) changeImage(t *testing.T) {
	c.waitForStatus(t, "alice", "Synced")
	c.applyToSource(t, "{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: other}}")
	c.setImage(t, "api", "shop/api:2")
	c.waitForRevision(t, "alice", 2)
	c.waitForStatus(t, "alice", "1 workload, 1 Secret changed")
	// The count is known before the record is written, which has the author.
	e := c.waitFor(t, "alice", "names the record of the Secret", func(e *v1alpha1.Environment) error {
		if e.Status.LatestDependencySync == "" {
			return errors.New("there is none")
		}
		return nil
	})
	mirrortest.Eventually(t, "the record of the Secret has an author", func(ctx context.Context) error {
		record, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).Get(ctx, e.Status.LatestDependencySync, metav1.GetOptions{})
		if err == nil && len(record.Status.ChangedBy) == 0 {
			err = c.described(errors.New("it has none"))
		}
		return err
	})
}
