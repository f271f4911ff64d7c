// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/container"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/node"
	"github.com/configbutler/slipstream/test/image"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// exampleRegistry is the registry with the image in the pages.
	exampleRegistry = "registry.example.com/slipstream"
	// gitInPods is the address of the Git server in Pods, from a range for documentation.
	gitInPods = "198.51.100.1:80"
)

// TestInstall follows the pages on installing, upgrading and uninstalling. The installation must mirror and build an environment.
func TestInstall(t *testing.T) {
	t.Parallel()
	container.NeedRoot(t)
	root := moduleRoot(t)
	build(t)
	support := clustertest.Program(t, "hack/dev")
	cluster := clustertest.Start(t, devcluster.Options{
		SupportProgram: support, Denials: "helm uninstall deletes the server's roles before its Pod has exited",
	})
	folder := startNode(t, cluster, support)
	r := newReader(t, strings.NewReplacer("repoUrl: https://git.example.com", "repoUrl: http://"+gitInPods))
	r.setenv(t, cluster.Environ()...)
	r.setenv(t, "GIT_PASSWORD=any", "REGISTRY_PASSWORD=any", "GIT_IN_PODS=http://"+gitInPods, "CLAIMS="+filepath.Join(folder, "claims"),
		"HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder,
		"PATH="+strings.Join([]string{
			filepath.Join(root, "test/docs/testdata/bin"), filepath.Dir(cluster.Env(devcluster.EnvKubectl)), filepath.Dir(helm(t, root)),
			filepath.Join(root, "bin"), os.Getenv("PATH"),
		}, ":"))
	installing, removing := splitAt(t, root, installPage, "## Uninstalling")
	_, fromReadme := splitAt(t, root, "README.md", installHeading)
	r.follow(t, fromReadme)
	r.follow(t, installing)
	r.follow(t, shellBlocks(t, root, upgradePage))
	r.follow(t, removing)
}

// startNode runs Pods of the image that readers build until the test ends. It returns the folder with the node's files.
func startNode(t *testing.T, cluster *devcluster.Cluster, support string) string {
	t.Helper()
	git, err := url.Parse(cluster.Env(devcluster.EnvGitURL))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	clustertest.StartNode(t, node.Options{
		Dir: folder, User: cluster.Admin(), Namespace: devcluster.ServerNamespace, Support: support,
		Images:  map[string]node.Image{exampleRegistry + ":" + appVersion(t): serverImage(t)},
		Outside: map[string]string{gitInPods: net.JoinHostPort(git.Hostname(), git.Port())},
	})
	return folder
}

// appVersion returns the image tag of the chart.
func appVersion(t *testing.T) string {
	t.Helper()
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(moduleRoot(t), "charts/slipstream/Chart.yaml"))), &chart); err != nil {
		t.Fatal(err)
	}
	return chart.AppVersion
}

// serverImage builds the image like readers do.
func serverImage(t *testing.T) node.Image {
	t.Helper()
	made, err := image.Make(t.Context(), moduleRoot(t), t.TempDir(), image.Server)
	if err != nil {
		t.Fatal(err)
	}
	return node.Image{Root: made.Root, Entrypoint: made.Entrypoint}
}
