// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
	"github.com/configbutler/slipstream/test/sopstest"
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
	}
}

// Every command in the pages works, and prints what the page says.
func TestPages(t *testing.T) {
	root := moduleRoot(t)
	build(t) // which a page does, and which takes as long as it takes when nothing has been built yet
	cluster := clustertest.Start(t, devcluster.Options{Server: true, Audit: true, Admission: true})
	r := newReader(t, ownServer(cluster))
	r.setenv(t, cluster.Environ()...)
	r.setenv(t, "GIT_PASSWORD=any",
		"DEV_DIR="+clusterFolder(cluster),
		"PATH="+filepath.Dir(cluster.Env(devcluster.EnvKubectl))+":"+filepath.Dir(sopstest.Command(t))+":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin")
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
	run := map[string]bool{"README.md": true}
	for _, page := range runnable() {
		run[page] = true
	}
	for _, page := range pages(t, root) {
		if blocks := shellBlocks(t, root, page); len(blocks) > 0 && !run[page] {
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

// Every manifest is admitted by a dry run and applied, and the server can do its work with
// the rights that the documentation gives it.
func TestManifests(t *testing.T) {
	root := moduleRoot(t)
	cluster := clustertest.Start(t, devcluster.Options{Server: true})
	admin := cluster.Kubectl(cluster.Admin())
	kubectl := func(arguments ...string) {
		t.Helper()
		if _, err := admin.Run(t.Context(), arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"shop", "shop-staging", "teams"} { // which a dry run of a manifest does not make for what follows
		kubectl("create", "namespace", namespace)
	}
	kubectl("create", "secret", "generic", "shop-git", "-n", "shop", "--from-literal=username=u", "--from-literal=password=p")
	for _, manifest := range inOrder(manifests(t, root)) {
		content := ownServer(cluster).Replace(readFile(t, filepath.Join(root, manifest)))
		content = strings.ReplaceAll(content, serverAccount, serverUser)
		for _, arguments := range [][]string{{"apply", "--dry-run=server", "-f", "-"}, {"apply", "-f", "-"}} {
			if _, err := admin.Feed(t.Context(), content, arguments...); err != nil {
				t.Errorf("%s: %v", manifest, err)
			}
		}
	}
	kubectl("wait", "--for=condition=Established", "crd/coupons.shop.example.com", "--timeout=60s")

	kubectl("delete", "clusterrolebinding", "slipstream-development")
	if err := cluster.StopServer(t.Context(), stopSignal); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Feed(t.Context(), rulesOf(mirroredTypes(t, root)), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	kubectl("wait", "--for=condition=Ready", "--timeout=60s", "-n", "shop",
		"gitrepoconfig/production", "gitdestination/production", "watchrule/granted", "clusterwatchrule/granted",
		"watchrule/workloads", "watchrule/claims", "clusterwatchrule/platform")
	kubectl("wait", "--for=condition=SecretsEncrypted", "--timeout=60s", "-n", "shop", "gitdestination/production")
}

// inOrder puts what others need before them.
func inOrder(files []string) []string {
	var first, last []string
	for _, file := range files {
		if strings.HasSuffix(file, "shop.yaml") || strings.HasSuffix(file, "definition.yaml") {
			first = append(first, file)
		} else {
			last = append(last, file)
		}
	}
	return append(first, last...)
}

// rulesOf are rules that select the types, of both scopes.
func rulesOf(namespaced, cluster []string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: granted, namespace: shop}
spec:
  destinationRef: {name: production}
  rules:
  - {name: granted, resources: [%s]}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: granted}
spec:
  destinationRef: {namespace: shop, name: production}
  rules:
  - {name: granted, scope: Cluster, resources: [%s]}
`, strings.Join(namespaced, ", "), strings.Join(cluster, ", "))
}
