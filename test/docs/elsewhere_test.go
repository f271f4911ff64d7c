// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// standIn is a part of a page's command that needs what a test does not have, and what is run in its place.
type standIn struct {
	says, runs string
	// around is what the command, or whoever types it, does to the server.
	around around
	why    string
}

// around is what happens to the server when a block is run.
type around string

const (
	// whileStopped stops the server before, and starts it after.
	whileStopped around = "while it is stopped"
	// startsAgain waits until the server has ended, and starts it.
	startsAgain around = "starts again"
)

// standIns are all there are. Each is on a page.
func standIns() []standIn {
	const noKubelet = "kubectl exec goes through a kubelet, and none is there"
	return []standIn{
		{
			says: "kubectl exec -n slipstream-system deploy/slipstream -- /slipstream", runs: "in-pod",
			why: noKubelet,
		},
		{
			says: "kubectl exec -i -n slipstream-system deploy/slipstream -- /slipstream restore", runs: "in-pod restore",
			around: startsAgain, why: noKubelet + ", to start the server again either",
		},
		{
			says: "bin/slipstream store defrag --data-dir /var/lib/slipstream", runs: `bin/slipstream store defrag --data-dir "$DATA_DIR"`,
			around: whileStopped, why: "the files of a test's server are in a folder of its own",
		},
		{
			says: "--set image.repository=registry.example.com/slipstream",
			runs: "--set image.repository=registry.example.com/slipstream --set flags.git-allow-insecure=true",
			why:  "the Git server of a test has no TLS",
		},
		{
			says: "-f slipstream-values.yaml", runs: "-f slipstream-values.yaml --set flags.git-allow-insecure=true",
			why: "the Git server of a test has no TLS",
		},
		{
			says: "git clone --quiet https://git.example.com", runs: `git clone --quiet "$GIT_URL"`,
			why: "readers put their own server there",
		},
		{
			says: "make bench", runs: "make --dry-run bench",
			why: "measures for a quarter of an hour",
		},
	}
}

// notRun is a command that no test of the pages runs.
type notRun struct {
	page string
	// begins is how the command begins.
	begins string
	why    string
}

// commandsNotRun are all there are. Each is in a console block.
func commandsNotRun() []notRun {
	return []notRun{
		{page: "README.md", begins: "make test", why: "it is what runs this"},
		{page: installPage, begins: "git clone", why: "where the reader is, is a clone"},
		{page: installPage, begins: "cd slipstream", why: "where the reader is, is a clone"},
		{page: installPage, begins: "make image IMAGE_PUSH=", why: "there is no registry; test/image pushes to one of its own"},
		{page: migrationPage, begins: "helm uninstall gitops-reverser", why: "nothing has installed its chart"},
		{page: migrationPage, begins: "helm upgrade", why: "it is refused, as the test of the page shows for both versions of helm"},
		{page: migrationPage, begins: "kubectl get apiservice", why: "it shows an installation that must not be made"},
		{page: installPage, begins: "skopeo copy", why: "there is no registry; a test of hack/image copies the layout"},
		{page: installPage, begins: "gcloud", why: "there is no cloud"},
		{page: installPage, begins: "aws", why: "there is no cloud"},
		{page: "README.md", begins: "make image IMAGE_PUSH=", why: "there is no registry; test/image pushes to one of its own"},
		{
			page: "docs/operations.md", begins: "kubectl exec -n slipstream-system deploy/slipstream -- /slipstream store set-aside",
			why: "nothing is damaged; TestUnreadableRecord of cmd/slipstream/app runs it",
		},
		{
			page: "docs/operations.md", begins: "bin/slipstream store set-aside --all --storage-backend=etcd3",
			why: "nothing is damaged; TestUnreadableRecord of cmd/slipstream/app runs it",
		},
		{page: "docs/operations.md", begins: "bin/slipstream migrate", why: "it takes an etcd of its own; test/e2e moves a server with one"},
		{page: "docs/operations.md", begins: "kubectl scale deployment/slipstream", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "kubectl wait pods", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "helm upgrade slipstream", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "kubectl logs -n slipstream-system job/slipstream-migrate", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "kubectl rollout status", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "helm uninstall slipstream", why: "no helm has installed the server; test/install runs this"},
		{page: "docs/operations.md", begins: "helm install slipstream", why: "Pods run in one namespace of a test; the command is that of the first installation"},
		{page: "docs/operations.md", begins: "kubectl exec -i -n elsewhere", why: "Pods run in one namespace of a test; the same is run before, in that"},
		{page: "docs/operations.md", begins: "rm with-key.tar", why: "it follows commands that are not run"},
		{page: "docs/performance.md", begins: "go run ./test/bench", why: "measures for minutes; test/bench has a test of its own"},
	}
}

// A stand-in that no page needs any more is gone from the list.
func TestStandInsAreNeeded(t *testing.T) {
	root := moduleRoot(t)
	var all strings.Builder
	for _, page := range pages(t, root) {
		for _, b := range shellBlocks(t, root, page) {
			all.WriteString(b.script + "\n")
		}
	}
	for _, each := range standIns() {
		if !strings.Contains(all.String(), each.says) {
			t.Errorf("no page says what has a stand-in: %s", each.says)
		}
	}
}

// Every command of the pages is run, or on the list of those that are not.
func TestCommandsThatAreNotRun(t *testing.T) {
	root := moduleRoot(t)
	list := commandsNotRun()
	found := make([]bool, len(list))
	for _, page := range pages(t, root) {
		for _, b := range fencedBlocks(t, root, page) {
			for _, command := range commandsOf(b) {
				at := slices.IndexFunc(list, func(n notRun) bool { return n.page == page && strings.HasPrefix(command, n.begins) })
				if at < 0 {
					t.Errorf("%s:%d: nothing runs this, and no reason is on the list: %s", page, b.line, command)
					continue
				}
				found[at] = true
			}
		}
	}
	for i, each := range list {
		if !found[i] {
			t.Errorf("%s has no command that begins so: %s", each.page, each.begins)
		}
	}
}

// commandsOf returns the commands of a console block, and lines of other blocks that look like commands.
func commandsOf(b fenced) []string {
	var commands []string
	for _, line := range b.lines {
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case b.language == languageShell || b.language == languageText || b.language == languageYAML:
		case prompted, b.language == languageConsole && looksLikeCommand.MatchString(line), b.language == "":
			commands = append(commands, command)
		}
	}
	return commands
}

// looksLikeCommand finds commands that are not said to be some.
var looksLikeCommand = regexp.MustCompile(`^(sudo |bin/)?(kubectl|helm|make|git|go|slipstream|docker|sops|openssl|curl) `)

// Commands are nowhere but in blocks that say what they are, and what is said to be printed follows what prints it.
func TestBlocksSayWhatTheyAre(t *testing.T) {
	root := moduleRoot(t)
	known := []string{languageShell, languageText, languageConsole, languageYAML}
	for _, page := range pages(t, root) {
		prints := false
		for _, b := range fencedBlocks(t, root, page) {
			if !slices.Contains(known, b.language) {
				t.Errorf("%s:%d: a block in the language %q: want one of %v", page, b.line, b.language, known)
			}
			if b.language == languageText && !prints {
				t.Errorf("%s:%d: no command is before what is printed", page, b.line)
			}
			prints = b.language == languageShell
		}
		for i, line := range strings.Split(readFile(t, filepath.Join(root, page)), "\n") {
			if command, indented := strings.CutPrefix(line, "    "); indented && looksLikeCommand.MatchString(command) {
				t.Errorf("%s:%d: a command that is in no fenced block: %s", page, i+1, command)
			}
		}
	}
}

// withStandIns returns a block as it can be run here, and what its stand-ins do to the server.
func withStandIns(b block) (block, around) {
	var does around
	for _, each := range standIns() {
		if strings.Contains(b.script, each.says) {
			b.script = strings.ReplaceAll(b.script, each.says, each.runs)
			does = around(max(string(does), string(each.around)))
		}
	}
	return b, does
}

// operator is who looks after the server of the reader's cluster.
type operator struct {
	cluster *devcluster.Cluster
}

// around runs a block, and does to the server what has to be done.
func (o *operator) around(ctx context.Context, does around, run func(ctx context.Context) error) error {
	if does == whileStopped {
		if err := o.cluster.StopServer(ctx, syscall.SIGTERM); err != nil {
			return err
		}
	}
	if err := run(ctx); err != nil || does == "" {
		return err
	}
	if does == startsAgain {
		// The null signal reaches nobody: this only waits until the server has ended.
		if err := o.cluster.StopServer(ctx, syscall.Signal(0)); err != nil {
			return err
		}
	}
	return o.cluster.StartServer(ctx)
}
