// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/container"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/node"
	"github.com/configbutler/slipstream/test/image"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// gitAddress is the address of the Git server in Pods, from a range for documentation.
const gitAddress = "198.51.100.1:80"

// installation is a cluster in which only what is in the release is installed.
type installation struct {
	*mirrortest.AdminCluster
	*built
	// plugin is the program of the archive.
	plugin devcluster.Kubectl
}

// testInstall installs the chart from the registry, runs its test, and uses the plugin of the archive as the page on installing does.
func (b *built) testInstall(t *testing.T) {
	container.NeedRoot(t)
	s := b.newInstallation(t)
	s.release(t)
	s.Run(t, "wait", "apiservice/"+devcluster.APIServiceName, "--for=condition=Available", "--timeout=10m")
	s.runHelm(t, "test", "slipstream", "--namespace", devcluster.ServerNamespace)

	s.Run(t, "create", "namespace", "shop")
	s.Run(t, "create", "namespace", "teams")
	s.Run(t, "create", "namespace", "shop-alice")
	s.Run(t, "create", "secret", "generic", "shop-git", "-n", "shop", "--from-literal=username=mirror", "--from-literal=password=any")
	s.release(t, `credentials={"shop": ["shop-git"]}`, `catalogs={"namespaces": ["shop"]}`,
		`environments={"sourceNamespaces": ["shop"], "targetNamespaces": ["shop-alice"]}`)
	s.Run(t, "wait", "apiservice/"+devcluster.APIServiceName, "--for=condition=Available", "--timeout=10m")

	s.use(t, "check")
	s.use(t, "mirror", "-n", "shop", "--to", "http://"+gitAddress+"/production.git", "--secret", "shop-git", "--apply")
	s.Run(t, "wait", "gitrepoconfig/production", "gitdestination/production", "watchrule/production", "-n", "shop", "--for=condition=Ready", "--timeout=10m")
	s.Run(t, "create", "deployment", "web", "-n", "shop", "--image=shop/web:1.8")
	s.mirrored(t, "web.yaml")
	s.use(t, "catalog", "production", "-n", "teams", "--from", "shop", "--workloads", "deployment/web", "--apply")
	s.Run(t, "wait", "appcatalog/production", "-n", "teams", "--for=condition=Ready", "--timeout=10m")
	s.use(t, "environment", "alice", "-n", "teams", "--catalog", "production", "--target", "shop-alice", "--apply")
	s.Run(t, "wait", "environment/alice", "-n", "teams", "--for=jsonpath={.status.changedWorkloadCount}=1", "--timeout=10m")
	s.use(t, "sync", "alice", "-n", "teams")
	if got := s.Run(t, "get", "deployments", "-n", "shop-alice", "-o", "name"); strings.TrimSpace(got) != "deployment.apps/web" {
		t.Errorf("the environment has %q", got)
	}
}

// newInstallation starts a cluster whose node has the images of the release, by digest.
func (b *built) newInstallation(t *testing.T) *installation {
	t.Helper()
	support := clustertest.Program(t, "hack/dev")
	cluster := clustertest.Start(t, devcluster.Options{SupportProgram: support})
	s := &installation{AdminCluster: mirrortest.AdminClusterOf(t, cluster), built: b}
	tools := t.TempDir()
	do(t, tools, "tar", "-xzf", filepath.Join(b.dist, "kubectl-slipstream_"+b.version+"_linux_"+runtime.GOARCH+".tar.gz"))
	s.plugin = devcluster.Kubectl{Program: filepath.Join(tools, "kubectl-slipstream"), User: s.Admin()}
	layout := t.TempDir()
	do(t, layout, "tar", "-xf", filepath.Join(b.dist, "slipstream.oci.tar"))
	server, err := image.Unpack(layout, filepath.Join(t.TempDir(), "root"))
	if err != nil {
		t.Fatal(err)
	}
	clustertest.StartNode(t, node.Options{
		Dir: t.TempDir(), User: s.Admin(), Namespace: devcluster.ServerNamespace, Support: support,
		Images:  map[string]node.Image{b.artifact(t, artifactNames[0]): {Root: server.Root, Entrypoint: server.Entrypoint}},
		Outside: map[string]string{gitAddress: strings.TrimPrefix(s.Env(devcluster.EnvGitURL), "http://")},
	})
	return s
}

// release installs or upgrades the chart from the registry, with values in the format of --set-json.
func (s *installation) release(t *testing.T, values ...string) {
	t.Helper()
	arguments := []string{
		"upgrade", "--install", "slipstream", "oci://" + s.registry + "/team/charts/slipstream", "--version", strings.TrimPrefix(s.version, "v"), "--plain-http",
		"--namespace", devcluster.ServerNamespace, "--create-namespace", "--wait", "--timeout", "10m",
		"--set", "image.repository=" + s.registry + "/team/slipstream", "--set", "flags.git-allow-insecure=true",
	}
	for _, value := range values {
		arguments = append(arguments, "--set-json", value)
	}
	s.runHelm(t, arguments...)
}

func (s *installation) runHelm(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.helm, arguments...)
	folder := t.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+string(s.Admin()), "HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder)
	if output, err := command.CombinedOutput(); err != nil {
		pods, _ := s.Administrator.Run(t.Context(), "describe", "pods", "-n", devcluster.ServerNamespace) // For the message only.
		t.Fatalf("helm %s: %v\n%s\n%s", arguments[0], err, output, pods)
	}
}

// use runs the plugin.
func (s *installation) use(t *testing.T, arguments ...string) {
	t.Helper()
	if output, err := s.plugin.Run(t.Context(), arguments...); err != nil {
		t.Fatalf("kubectl slipstream %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// mirrored waits until a file is in the repository.
func (s *installation) mirrored(t *testing.T, name string) {
	t.Helper()
	repository := filepath.Join(s.Env(devcluster.EnvGitRoot), "production.git")
	mirrortest.Eventually(t, name+" is in Git", func(ctx context.Context) error {
		output, err := exec.CommandContext(ctx, "git", "-C", repository, "ls-tree", "-r", "--name-only", "HEAD").CombinedOutput()
		if err == nil && !strings.Contains(string(output), "/"+name+"\n") {
			err = errors.New("the file is missing")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, output)
		}
		return err
	})
}
