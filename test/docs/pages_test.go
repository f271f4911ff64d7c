// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

const (
	tourPage          = "docs/tour.md"
	installPage       = "docs/install.md"
	upgradePage       = "docs/upgrading.md"
	firstStepsPage    = "docs/first-steps.md"
	notificationsPage = "docs/notifications.md"
	// installHeading is the heading of the README after which it describes the installation. The part before is about the demo.
	installHeading = "## Install it into a cluster"
)

// runnable returns the pages whose blocks are run, in the order in which a reader follows them. Later pages use objects of
// earlier ones.
func runnable() []string {
	return []string{
		"docs/kinds/gitrepoconfig.md",
		"docs/kinds/gitdestination.md",
		"docs/kinds/watchrule.md",
		"docs/kinds/clusterwatchrule.md",
		"docs/kinds/gitdestinationstatus.md",
		"docs/kinds/change.md",
		"docs/kinds/syncpolicy.md",
		"docs/kinds/appcatalog.md",
		"docs/kinds/catalogworkload.md",
		"docs/kinds/syncstatus.md",
		"docs/kinds/environment.md",
		"docs/kinds/environmentdependency.md",
		"docs/kinds/syncpipeline.md",
		"docs/kinds/notificationsink.md",
		firstStepsPage,
		"docs/secrets.md",
		"docs/gitops.md",
		"docs/permissions.md",
		"docs/attribution.md",
		"docs/operations.md",
		"docs/performance.md",
	}
}

// runByThemselves returns the pages that have their own tests with their own clusters.
func runByThemselves() []string {
	return []string{"README.md", tourPage, "docs/development.md", installPage, upgradePage, migrationPage, restoringPage, historyPage, observabilityPage}
}

// TestDevelopment follows the page on development, which starts and stops a cluster.
func TestDevelopment(t *testing.T) {
	t.Parallel()
	build(t)
	r := newReader(t, strings.NewReplacer())
	t.Cleanup(func() {
		// The context of the test has ended already.
		if out, err := r.run(context.Background(), "bin/dev down --dir .dev/cluster"); err != nil {
			t.Errorf("stop the cluster: %v\n%s", err, out)
		}
	})
	r.follow(t, shellBlocks(t, moduleRoot(t), "docs/development.md"))
}

// longestWait lets the server wait for authors as long as it can: on a busy machine they are reported late.
const longestWait = "--attribution-max-wait=30s"

// TestPages runs every command of the pages and compares the output with the page.
func TestPages(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	build(t) // a page builds the programs, too, which may exceed its deadline
	cluster := clustertest.Start(t, devcluster.Options{Server: true, Audit: true, Admission: true, ServerArgs: []string{longestWait}})
	r := newReader(t, ownServer(cluster))
	r.setenv(t, cluster.Environ()...)
	r.operator = &operator{cluster: cluster}
	r.setenv(t, "GIT_PASSWORD=any", "GIT_IN_PODS="+cluster.Env(devcluster.EnvGitURL),
		"CLUSTER_DIR="+clusterFolder(cluster),
		"PATH="+strings.Join([]string{
			filepath.Join(root, "test/docs/testdata/bin"), filepath.Join(root, "bin"),
			filepath.Dir(cluster.Env(devcluster.EnvKubectl)), filepath.Dir(sopstest.Command(t)),
			"/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin",
		}, ":"))
	wantPageForEachKind(t, cluster)
	for _, page := range runnable() {
		blocks := shellBlocks(t, root, page)
		if len(blocks) == 0 {
			t.Errorf("%s: no block is run", page)
		}
		r.follow(t, blocks)
	}
}

// TestAllBlocksAreRun checks that every page with shell blocks is run.
func TestAllBlocksAreRun(t *testing.T) {
	root := moduleRoot(t)
	run := append(runnable(), runByThemselves()...)
	for _, page := range pages(t, root) {
		if blocks := shellBlocks(t, root, page); len(blocks) > 0 && !slices.Contains(run, page) {
			t.Errorf("%s: block is not run", blocks[0].place)
		}
	}
}

// ownServer replaces the addresses of the examples by those of the cluster's Git server and receiver of events.
func ownServer(cluster *devcluster.Cluster) *strings.Replacer {
	return strings.NewReplacer(
		"ssh://git@git.example.com", cluster.Env(devcluster.EnvGitSSHURL),
		"repoUrl: https://git.example.com", "repoUrl: "+cluster.Env(devcluster.EnvGitURL),
		"${GIT_URL}", cluster.Env(devcluster.EnvGitURL),
		"https://inventory.example.com", cluster.Env(devcluster.EnvReceiverURL),
		"${RECEIVER_URL}", cluster.Env(devcluster.EnvReceiverURL),
		"${WEBHOOK_URL}", cluster.Env(devcluster.EnvReceiverURL),
		"    caBundle: ${MAIL_CA_BUNDLE}\n", "",
		"${MAIL_HOST}", "127.0.0.1", "${MAIL_PORT}", "587",
	)
}

// clusterFolder returns the folder in which a cluster was started.
func clusterFolder(cluster *devcluster.Cluster) string {
	return filepath.Dir(filepath.Dir(cluster.Env(devcluster.EnvKubeconfig)))
}
