// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package image_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/container"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/node"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/image"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// gitAddress is the address of the Git server in Pods, from a range for documentation.
const gitAddress = "198.51.100.1:80"

// testCluster is a cluster that runs the image.
type testCluster struct {
	*mirrortest.AdminCluster
	// root is the folder of the repository, support the program hack/dev.
	root, support string
	image         *image.Image
	node          *node.Node
	// nodeDir is the node's folder.
	nodeDir string
}

// newTestCluster builds the image, and starts a cluster without an installation.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	container.NeedRoot(t)
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	s := &testCluster{root: root, nodeDir: t.TempDir(), support: clustertest.Program(t, "hack/dev")}
	if s.image, err = image.Make(t.Context(), root, t.TempDir(), image.Server); err != nil {
		t.Fatal(err)
	}
	cluster := clustertest.Start(t, devcluster.Options{SupportProgram: s.support})
	s.AdminCluster = mirrortest.AdminClusterOf(t, cluster)
	return s
}

// install applies artifacts/install.yaml with plain HTTP allowed, and runs its Pods until the test ends.
func (s *testCluster) install(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.root, "artifacts", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *image: (\S+)$`).FindStringSubmatch(string(content))
	if found == nil {
		t.Fatal("artifacts/install.yaml has no image")
	}
	s.node = clustertest.StartNode(t, node.Options{
		Dir: s.nodeDir, User: s.Admin(), Namespace: devcluster.ServerNamespace, Support: s.support,
		Images:  map[string]node.Image{found[1]: {Root: s.image.Root, Entrypoint: s.image.Entrypoint}},
		Outside: map[string]string{gitAddress: strings.TrimPrefix(s.Env(devcluster.EnvGitURL), "http://")},
	})
	const argument = "- --namespace=slipstream-system\n"
	manifest := strings.Replace(string(content), argument, argument+"        - --git-allow-insecure\n", 1)
	s.Apply(t, manifest)
	s.Run(t, "rollout", "status", "deployment/slipstream", "--namespace="+devcluster.ServerNamespace, "--timeout=10m")
	s.Run(t, "wait", "--for=condition=Available", "apiservice/"+devcluster.APIServiceName, "--timeout=10m")
}

// run runs a command of the program on the server's volume, like kubectl exec, and returns its output.
func (s *testCluster) run(t *testing.T, arguments ...string) []byte {
	t.Helper()
	claim := s.Run(t, "get", "persistentvolumeclaim", "slipstream", "--namespace="+devcluster.ServerNamespace,
		"--output=jsonpath={.metadata.uid}")
	command, err := container.Command(t.Context(), s.support, container.Spec{
		Root: s.image.Root, ReadOnlyRoot: true, User: 65532, Group: 65532,
		Args:   append([]string{"/slipstream"}, arguments...),
		Mounts: []container.Mount{{HostPath: filepath.Join(s.nodeDir, "claims", claim), Path: "/var/lib/slipstream"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, &stderr)
	}
	return output
}
