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

// standIn is a part of a page's command that requires what a test does not have, and its replacement.
type standIn struct {
	text, replacement string
	// around is the effect of the command or of its user on the server.
	around around
	why    string
}

// around is the treatment of the server when a block is run.
type around string

const (
	// whileStopped stops the server before the block, and starts it afterwards.
	whileStopped around = "while it is stopped"
	// startsAgain waits until the server has exited after the block, and starts it.
	startsAgain around = "starts again"
)

// standIns returns all replacements. Each must be used in a page.
func standIns() []standIn {
	const noKubelet = "kubectl exec requires a kubelet"
	return []standIn{
		{
			text: "kubectl exec -n slipstream-system deploy/slipstream -- /slipstream", replacement: "in-pod",
			why: noKubelet,
		},
		{
			text: "kubectl exec -i -n slipstream-system deploy/slipstream -- /slipstream restore", replacement: "in-pod restore",
			around: startsAgain, why: noKubelet + ", and so does the restart of the container",
		},
		{
			text: "bin/slipstream store defrag --data-dir /var/lib/slipstream", replacement: `bin/slipstream store defrag --data-dir "$DATA_DIR"`,
			around: whileStopped, why: "the data directory of a test is another one",
		},
		{
			text:        "--set image.repository=registry.example.com/slipstream",
			replacement: "--set image.repository=registry.example.com/slipstream --set flags.git-allow-insecure=true",
			why:         "the Git server of a test has no TLS",
		},
		{
			text: "-f slipstream-values.yaml", replacement: "-f slipstream-values.yaml --set flags.git-allow-insecure=true",
			why: "the Git server of a test has no TLS",
		},
		{
			text: "git clone --quiet https://git.example.com", replacement: `git clone --quiet "$GIT_URL"`,
			why: "readers use their own server",
		},
		{
			text: "--to https://git.example.com", replacement: `--to "$GIT_IN_PODS"`,
			why: "readers use their own server",
		},
		{
			text: "kubectl slipstream webhook-config", replacement: "kubectl slipstream webhook-config --address 127.0.0.1:443",
			why: "the Service of a test has no cluster IP; test/attribution starts a kube-apiserver with the files",
		},
		{
			text: "kubectl logs -n slipstream-system deploy/slipstream", replacement: `cat "$SERVER_LOG"`,
			why: "kubectl logs requires a kubelet",
		},
		{
			text: "kubectl logs -n observability deploy/collector", replacement: `cat "$COLLECTOR_LOG"`,
			why: "kubectl logs requires a kubelet, and the collector is test/testkit/tracetest",
		},
		{
			text: "--server=https://localhost:10250", replacement: `--server="$SERVER_URL"`,
			why: "kubectl port-forward requires a kubelet",
		},
		{
			text: "make bench", replacement: "make --dry-run bench",
			why: "takes a quarter of an hour",
		},
	}
}

// notRun is a command that no test of the pages runs.
type notRun struct {
	page string
	// begins is the prefix of the command.
	begins string
	why    string
}

// commandsNotRun returns all commands that are not run. Each must be in a console block.
func commandsNotRun() []notRun {
	return []notRun{
		{page: "README.md", begins: "make test", why: "it runs this test"},
		{page: "README.md", begins: "kubectl slipstream mirror", why: "the page on installing runs it"},
		{page: "README.md", begins: "kubectl slipstream log", why: "the page on the history runs it"},
		{page: "README.md", begins: "kubectl slipstream undo", why: "the page on the history runs it"},
		{page: "docs/dashboard.md", begins: "kubectl slipstream dashboard", why: "it does not end; the demo and test/page run it"},
		{page: "docs/dashboard.md", begins: "kubectl create secret generic page-proxy", why: "there is no identity provider"},
		{page: "docs/dashboard.md", begins: "kubectl apply -f artifacts/examples/page-proxy.yaml", why: "TestManifests applies it"},
		{page: "docs/dashboard.md", begins: "helm upgrade slipstream", why: "the server is not installed by helm; test/install installs the page"},
		{page: "docs/gitops.md", begins: "kubectl slipstream bootstrap", why: "there is one cluster; test/partners applies the manifests to another"},
		{page: "docs/proposals.md", begins: "kubectl create secret generic shop-git", why: "no page has a Git host; test/partners creates such a Secret"},
		{page: "docs/proposals.md", begins: "kubectl apply -f artifacts/examples/proposals.yaml", why: "TestManifests applies it"},
		{page: "docs/proposals.md", begins: "kubectl get gds reviewed", why: "no page has a Git host; test/partners proposes to a Gitea"},
		{page: "docs/proposals.md", begins: "kubectl slipstream sync", why: "no page has a Git host; test/partners proposes to a Gitea"},
		{page: notificationsPage, begins: "kubectl create secret generic", why: "the receivers are others; test/integration uses such Secrets"},
		{page: notificationsPage, begins: "kubectl slipstream notify test record", why: "TestEnvironments and the tour run it"},
		{page: notificationsPage, begins: "kubectl slipstream notify test slack", why: "there is no Slack; TestNotifyTestRequests runs it"},
		{page: tourPage, begins: "make dev-up", why: "TestPages runs the pages of the kinds on such a cluster"},
		{page: tourPage, begins: "eval", why: "its variables are those of another cluster; other blocks print those of the demo"},
		{page: tourPage, begins: "sed -i", why: "TestPages replaces the same texts in its copies of the examples"},
		{page: installPage, begins: "git clone", why: "the test runs in a clone"},
		{page: installPage, begins: "cd slipstream", why: "the test runs in a clone"},
		{page: installPage, begins: "mkdir slipstream-v", why: "it is for the files of a release, which no test downloads"},
		{page: installPage, begins: "curl --fail", why: "no test downloads a release; test/release builds one"},
		{page: installPage, begins: "tar -xzf kubectl-slipstream_v", why: "no test downloads a release; a test of hack/pluginrelease unpacks the archives"},
		{page: installPage, begins: "sudo install kubectl-slipstream", why: "no test downloads a release, and it writes outside of the test's folder"},
		{page: installPage, begins: "kubectl slipstream version", why: "no test downloads a release; TestVersion of cmd/kubectl-slipstream/app runs it"},
		{page: installPage, begins: "kubectl krew install", why: "krew is not installed; a test of hack/pluginrelease reads the manifest"},
		{page: installPage, begins: "kubectl apply -f install.yaml", why: "no test downloads a release; test/install applies artifacts/install.yaml"},
		{page: firstStepsPage, begins: "helm upgrade slipstream", why: "the server is not installed by helm; the page on installing runs it"},
		{page: upgradePage, begins: "helm upgrade slipstream ./slipstream-NEW_VERSION.tgz", why: "no test downloads a release; test/release installs one from a registry"},
		{page: installPage, begins: "make image IMAGE_PUSH=", why: "no registry; test/image pushes to its own"},
		{page: migrationPage, begins: "helm uninstall gitops-reverser", why: "its chart is not installed"},
		{page: migrationPage, begins: "helm upgrade", why: "it fails, as the test of the page checks for both versions of helm"},
		{page: migrationPage, begins: "kubectl get apiservice", why: "it shows an invalid installation"},
		{page: installPage, begins: "helm upgrade --install slipstream ./", why: "there is no release; test/release installs one from a registry"},
		{page: installPage, begins: "sha256sum", why: "there is no release; test/release runs it with one that it builds"},
		{page: installPage, begins: "cosign verify", why: "there is no release; test/release runs it with one that it builds"},
		{page: installPage, begins: "jq -r '.dsseEnvelope", why: "there is no release; test/release runs it with one that it builds"},
		{page: installPage, begins: "gh attestation verify", why: "it needs GitHub, and a release there"},
		{page: installPage, begins: "skopeo copy", why: "no registry; a test of hack/image copies the layout"},
		{page: installPage, begins: "gcloud", why: "no cloud account"},
		{page: installPage, begins: "aws", why: "no cloud account"},
		{page: "docs/releasing.md", begins: "make release", why: "the clone has no tag"},
		{page: "README.md", begins: "make image IMAGE_PUSH=", why: "no registry; test/image pushes to its own"},
		{
			page: "docs/operations.md", begins: "kubectl exec -n slipstream-system deploy/slipstream -- /slipstream store set-aside",
			why: "no record is damaged; TestUnreadableRecord of cmd/slipstream/app runs it",
		},
		{
			page: "docs/operations.md", begins: "bin/slipstream store set-aside --all --storage-backend=etcd3",
			why: "no record is damaged; TestUnreadableRecord of cmd/slipstream/app runs it",
		},
		{page: "docs/operations.md", begins: "bin/slipstream migrate", why: "it requires an etcd; test/e2e migrates a server"},
		{
			page: "docs/operations.md", begins: "kubectl scale deployment/slipstream",
			why: "the server is not installed by helm; test/install runs this",
		},
		{page: "docs/operations.md", begins: "kubectl wait pods", why: "the server is not installed by helm; test/install runs this"},
		{page: "docs/operations.md", begins: "helm upgrade slipstream", why: "the server is not installed by helm; test/install runs this"},
		{
			page: "docs/operations.md", begins: "kubectl logs -n slipstream-system job/slipstream-migrate",
			why: "the server is not installed by helm; test/install runs this",
		},
		{page: "docs/operations.md", begins: "kubectl rollout status", why: "the server is not installed by helm; test/install runs this"},
		{page: "docs/operations.md", begins: "helm uninstall slipstream", why: "the server is not installed by helm; test/install runs this"},
		{
			page: "docs/operations.md", begins: "helm install slipstream",
			why: "Pods run in one namespace of a test; the command is that of the first installation",
		},
		{
			page: "docs/operations.md", begins: "kubectl exec -i -n elsewhere",
			why: "Pods run in one namespace of a test; the same command runs in that namespace before",
		},
		{page: "docs/operations.md", begins: "rm with-key.tar", why: "it depends on commands that are not run"},
		{page: "docs/performance.md", begins: "go run ./test/bench", why: "takes minutes; test/bench has its own test"},
	}
}

// TestStandInsAreNeeded checks that each replacement is used in a page.
func TestStandInsAreNeeded(t *testing.T) {
	root := moduleRoot(t)
	var all strings.Builder
	for _, page := range pages(t, root) {
		for _, b := range shellBlocks(t, root, page) {
			all.WriteString(b.script + "\n")
		}
	}
	for _, each := range standIns() {
		if !strings.Contains(all.String(), each.text) {
			t.Errorf("no page contains the replaced text: %s", each.text)
		}
	}
}

// TestCommandsThatAreNotRun checks that every command of the pages is run, or listed in commandsNotRun.
func TestCommandsThatAreNotRun(t *testing.T) {
	root := moduleRoot(t)
	list := commandsNotRun()
	found := make([]bool, len(list))
	for _, page := range pages(t, root) {
		for _, b := range fencedBlocks(t, root, page) {
			for _, command := range commandsOf(b) {
				at := slices.IndexFunc(list, func(n notRun) bool { return n.page == page && strings.HasPrefix(command, n.begins) })
				if at < 0 {
					t.Errorf("%s:%d: command is neither run nor in commandsNotRun: %s", page, b.line, command)
					continue
				}
				found[at] = true
			}
		}
	}
	for i, each := range list {
		if !found[i] {
			t.Errorf("%s has no command with the prefix: %s", each.page, each.begins)
		}
	}
}

// commandsOf returns the commands of a console block, and lines of other blocks that look like commands.
func commandsOf(b fenced) []string {
	var commands []string
	for _, line := range b.lines {
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case b.language == languageShell || b.language == languageText || b.language == languageYAML || b.language == languageJSON:
		case prompted, b.language == languageConsole && looksLikeCommand.MatchString(line), b.language == "":
			commands = append(commands, command)
		}
	}
	return commands
}

// looksLikeCommand matches commands in blocks without a prompt.
var looksLikeCommand = regexp.MustCompile(`^(sudo |bin/)?(kubectl|helm|make|git|go|slipstream|docker|sops|openssl|curl) `)

// TestBlockLanguages checks that commands are only in blocks with a known language, and that output follows the block that prints it.
func TestBlockLanguages(t *testing.T) {
	root := moduleRoot(t)
	known := []string{languageShell, languageText, languageConsole, languageYAML, languageJSON, languageGo, languagePython}
	for _, page := range pages(t, root) {
		prints := false
		for _, b := range fencedBlocks(t, root, page) {
			if !slices.Contains(known, b.language) {
				t.Errorf("%s:%d: language of the block = %q, want one of %v", page, b.line, b.language, known)
			}
			if b.language == languageText && !prints {
				t.Errorf("%s:%d: output does not follow a command", page, b.line)
			}
			prints = b.language == languageShell
		}
		for i, line := range strings.Split(readFile(t, filepath.Join(root, page)), "\n") {
			if command, indented := strings.CutPrefix(line, "    "); indented && looksLikeCommand.MatchString(command) {
				t.Errorf("%s:%d: command outside of a fenced block: %s", page, i+1, command)
			}
		}
	}
}

// withStandIns returns a block with its replacements, and their effect on the server.
func withStandIns(b block) (block, around) {
	var does around
	for _, each := range standIns() {
		if strings.Contains(b.script, each.text) {
			b.script = strings.ReplaceAll(b.script, each.text, each.replacement)
			does = around(max(string(does), string(each.around)))
		}
	}
	return b, does
}

// operator stops and starts the server of the reader's cluster.
type operator struct {
	cluster *devcluster.Cluster
}

// around runs a block, with its effect on the server.
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
		if err := o.cluster.WaitForServer(ctx); err != nil {
			return err
		}
	}
	return o.cluster.StartServer(ctx)
}
