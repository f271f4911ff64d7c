// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/container"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/node"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/image"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

const (
	namespace = devcluster.ServerNamespace
	// chart is the folder of the chart, relative to the root of the repository.
	chart = "charts/slipstream"
	// apiService is the registration of the API.
	apiService = "apiservice/" + devcluster.APIServiceName
)

// testCluster is a cluster with running Pods, in which nothing is installed at first.
type testCluster struct {
	*mirrortest.AdminCluster
	// root is the folder of the repository.
	root string
	// previous is a folder with the previous version, or empty if the clone is shallow.
	previous    string
	outside     *outside
	helm, helm3 string
	// program is the program of the image, claims the folder with the volumes of Pods.
	program, claims string
}

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	container.NeedRoot(t)
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	support := clustertest.Program(t, "hack/dev")
	s := &testCluster{root: root, helm: tool(t, root, programs.Helm), helm3: tool(t, root, programs.Helm3)}
	cluster := clustertest.Start(t, devcluster.Options{
		SupportProgram: support, Denials: "helm uninstall deletes the server's roles before its Pod has exited",
	})
	s.AdminCluster = mirrortest.AdminClusterOf(t, cluster)
	s.outside = newOutside(t, cluster)
	current := newImage(t, root, image.Server)
	s.program = filepath.Join(current.Root, current.Entrypoint[0])
	images := map[string]node.Image{
		repository + ":" + version(t, root):     current,
		pageRepository + ":" + version(t, root): newImage(t, root, image.Page),
	}
	s.previous = upgradetest.Previous(t, root, *previousFlag)
	images[repository+":"+previousTag] = newImage(t, s.previous, image.Server)
	s.startNode(t, support, images)
	return s
}

func tool(t *testing.T, root string, of programs.Tool) string {
	t.Helper()
	program, err := of.Build(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// startNode runs the Pods in the server's namespace until the test ends, and logs their output if it fails.
func (s *testCluster) startNode(t *testing.T, support string, images map[string]node.Image) {
	t.Helper()
	folder := t.TempDir()
	s.claims = filepath.Join(folder, "claims")
	clustertest.StartNode(t, node.Options{
		Dir: folder, User: s.Admin(), Namespace: namespace, Support: support,
		Images: images, Outside: s.outside.addresses,
	})
}

// command runs a program in the repository and returns its output.
func (s *testCluster) command(ctx context.Context, input, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = s.root
	folder := filepath.Dir(string(s.Admin()))
	command.Env = append(os.Environ(), "KUBECONFIG="+string(s.Admin()), "KUBECACHEDIR="+filepath.Join(folder, "cache"),
		"HELM_CACHE_HOME="+filepath.Join(folder, "helm"), "HELM_CONFIG_HOME="+filepath.Join(folder, "helm"),
		"HELM_DATA_HOME="+filepath.Join(folder, "helm"))
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(arguments, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// do runs a program, which must succeed. On failure, the test prints the state of the installation.
func (s *testCluster) do(t *testing.T, input, program string, arguments ...string) string {
	t.Helper()
	out, err := s.command(t.Context(), input, program, arguments...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, s.describe(t))
	}
	return out
}

// describe returns the state of the installation, for messages.
func (s *testCluster) describe(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, arguments := range [][]string{
		{"get", "all,pvc", "-n", namespace}, {"describe", "pods", "-n", namespace}, {"get", apiService, "-o", "yaml"},
	} {
		out, err := s.Administrator.Run(t.Context(), arguments...)
		fmt.Fprintf(&all, "%s\n%v\n", out, err)
	}
	return all.String()
}

// release installs or upgrades the release with the chart of the work tree, and waits until its API is available. Values have the format
// of --set-json. It returns the output of helm.
func (s *testCluster) release(t *testing.T, values ...string) string {
	t.Helper()
	return s.releaseBy(t, s.helm, chart, values...)
}

// releaseBy does the same with another helm or chart.
func (s *testCluster) releaseBy(t *testing.T, helm, chart string, values ...string) string {
	t.Helper()
	arguments := []string{"upgrade", "--install", "slipstream", chart, "--namespace", namespace, "--wait", "--timeout", "10m"}
	notes := s.do(t, "", helm, append(arguments, setting(values)...)...)
	if breakGlass := "kubectl delete apiservice " + devcluster.APIServiceName; !strings.Contains(notes, breakGlass) {
		t.Errorf("output of helm lacks %q:\n%s", breakGlass, notes)
	}
	s.available(t)
	return notes
}

// setting returns the flags that set values.
func setting(values []string) []string {
	var flags []string
	for _, value := range values {
		flags = append(flags, "--set-json", value)
	}
	return flags
}

// available waits until the API is available through the aggregator.
func (s *testCluster) available(t *testing.T) {
	t.Helper()
	s.do(t, "", s.Administrator.Program, "wait", "--for=condition=Available", apiService, "--timeout=10m")
	mirrortest.Eventually(t, "discovery has the kinds", func(ctx context.Context) error {
		kinds, err := s.Administrator.Run(ctx, "api-resources", "--api-group=configbutler.ai", "--output=name")
		if err == nil && !strings.Contains(kinds, "gitdestinations") {
			err = fmt.Errorf("kinds = %q", kinds)
		}
		return err
	})
}

// remove deletes everything that tests leave.
func (s *testCluster) remove(t *testing.T) {
	t.Helper()
	s.do(t, "", s.helm, "uninstall", "slipstream", "-n", namespace, "--wait", "--ignore-not-found")
	for _, rest := range []string{"apiservices,validatingwebhookconfigurations,clusterroles,clusterrolebindings", "roles,rolebindings"} {
		s.Run(t, "delete", rest, "-l", "app.kubernetes.io/name=slipstream", "-n", "kube-system")
	}
	s.Run(t, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=10m")
}

// pods returns the names of the server's Pods.
func (s *testCluster) pods(t *testing.T) []string {
	t.Helper()
	return strings.Fields(s.Run(t, "get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=server", "-o", "name"))
}
