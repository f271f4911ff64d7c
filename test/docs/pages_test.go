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
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
	"github.com/configbutler/slipstream/test/sopstest"
)

const (
	tourPage    = "docs/tour.md"
	installPage = "docs/install.md"
	upgradePage = "docs/upgrading.md"
	// installHeading begins the part of the README that is about the same; all before it is about the demo.
	installHeading = "## Install it into a cluster"
)

// runnable are the pages whose blocks are run, in the order in which a reader meets them:
// later ones use what earlier ones have made.
func runnable() []string {
	return []string{
		"docs/kinds/gitrepoconfig.md",
		"docs/kinds/gitdestination.md",
		"docs/kinds/watchrule.md",
		"docs/kinds/clusterwatchrule.md",
		"docs/kinds/gitdestinationstatus.md",
		"docs/kinds/syncpolicy.md",
		"docs/kinds/appcatalog.md",
		"docs/kinds/catalogworkload.md",
		"docs/kinds/syncstatus.md",
		"docs/kinds/environment.md",
		"docs/kinds/environmentdependency.md",
		"docs/kinds/syncpipeline.md",
		"docs/secrets.md",
		"docs/permissions.md",
		"docs/attribution.md",
		"docs/operations.md",
		"docs/performance.md",
	}
}

// runByThemselves are the pages that are run on a cluster of their own, each by its test.
func runByThemselves() []string {
	return []string{"README.md", tourPage, "docs/development.md", installPage, upgradePage, migrationPage, restoringPage}
}

// Whoever develops starts a cluster, and ends it.
func TestDevelopment(t *testing.T) {
	build(t)
	r := newReader(t, strings.NewReplacer())
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if out, err := r.run(context.Background(), "bin/dev down --dir .dev/cluster"); err != nil {
			t.Errorf("ending the cluster: %v\n%s", err, out)
		}
	})
	r.follow(t, shellBlocks(t, moduleRoot(t), "docs/development.md"))
}

// Every command in the pages works, and prints what the page says.
func TestPages(t *testing.T) {
	root := moduleRoot(t)
	build(t) // which a page does, and which takes as long as it takes when nothing has been built yet
	cluster := clustertest.Start(t, devcluster.Options{Server: true, Audit: true, Admission: true})
	r := newReader(t, ownServer(cluster))
	r.setenv(t, cluster.Environ()...)
	r.operator = &operator{cluster: cluster}
	r.setenv(t, "GIT_PASSWORD=any",
		"DEV_DIR="+clusterFolder(cluster),
		"PATH="+strings.Join([]string{
			filepath.Join(root, "test/docs/testdata/bin"),
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

// No page has blocks that are never run.
func TestAllBlocksAreRun(t *testing.T) {
	root := moduleRoot(t)
	run := append(runnable(), runByThemselves()...)
	for _, page := range pages(t, root) {
		if blocks := shellBlocks(t, root, page); len(blocks) > 0 && !slices.Contains(run, page) {
			t.Errorf("%s is not run", blocks[0].place)
		}
	}
}

// ownServer puts the cluster's Git server, and its receiver of events, where the examples name one.
func ownServer(cluster *devcluster.Cluster) *strings.Replacer {
	return strings.NewReplacer(
		"ssh://git@git.example.com", cluster.Env(devcluster.EnvGitSSHURL),
		"repoUrl: https://git.example.com", "repoUrl: "+cluster.Env(devcluster.EnvGitURL),
		"${GIT_URL}", cluster.Env(devcluster.EnvGitURL),
		"https://inventory.example.com", cluster.Env(devcluster.EnvReceiverURL),
		"${RECEIVER_URL}", cluster.Env(devcluster.EnvReceiverURL),
	)
}

// clusterFolder is the folder that a cluster was started in.
func clusterFolder(cluster *devcluster.Cluster) string {
	return filepath.Dir(filepath.Dir(cluster.Env(devcluster.EnvKubeconfig)))
}
