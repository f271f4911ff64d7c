// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fluxtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// Namespace is the namespace of Flux.
	Namespace = "flux-system"
	// buildLimit is longer than it takes to build a controller on a busy machine.
	buildLimit = 40 * time.Minute
	// shownLog is the size of the shown end of a log, in bytes.
	shownLog = 6000
)

// Flux is a running Flux.
type Flux struct {
	*mirrortest.Objects
	cluster *devcluster.Cluster
	dir     string
}

// account returns the user as which a controller of Flux sends its requests.
func account(controller string) string {
	return "system:serviceaccount:" + Namespace + ":" + controller
}

// Start installs Flux in a cluster, and runs it until the test ends. The first call builds the controllers, which takes minutes. Each has
// the rights and the account that Flux's own installation gives it.
func Start(t testing.TB, cluster *devcluster.Cluster) *Flux {
	t.Helper()
	f := &Flux{Objects: mirrortest.ObjectsOf(t, cluster.Admin()), cluster: cluster, dir: t.TempDir()}
	f.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+Namespace+"}}")
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	source, kustomize := f.install(t, root, programs.SourceController, "source-controller"), f.install(t, root, programs.KustomizeController, "kustomize-controller")
	storage := freeAddress(t)
	f.run(t, source, "source-controller", "--storage-path="+t.TempDir(), "--storage-addr="+storage, "--storage-adv-addr="+storage)
	f.run(t, kustomize, "kustomize-controller", "--no-remote-bases")
	return f
}

// install builds a controller, and applies its definitions and rights. It returns the program.
func (f *Flux) install(t testing.TB, root string, tool programs.Tool, name string) (program string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	program, err := tool.Build(ctx, root)
	if err != nil {
		t.Fatalf("failed to build %s: %v", name, err)
	}
	module, err := tool.Files(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join(module, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("%s has no definitions: %v", name, err)
	}
	for _, file := range definitions {
		definition, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f.Apply(t, string(definition))
	}
	f.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flux-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[2]s"}]
`, name, account(name)))
	return program
}

// supervisor runs a program until its own input ends, which is when the process that started it has ended, for whatever reason.
const supervisor = `"$0" "$@" & cat; kill $! && wait $!`

// run runs a controller until the test ends, and waits until it is ready.
func (f *Flux) run(t testing.TB, program, name string, flags ...string) {
	t.Helper()
	user, err := f.cluster.User(account(name), "system:serviceaccounts", "system:serviceaccounts:"+Namespace)
	if err != nil {
		t.Fatal(err)
	}
	// The name of the user is in that of its file, and $KUBECONFIG takes a colon for the end of a path.
	kubeconfig, err := os.ReadFile(string(user))
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, name), kubeconfig, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(f.dir, name+".log")
	log, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	health := freeAddress(t)
	flags = append([]string{"-c", supervisor, program, "--health-addr=" + health, "--metrics-addr=0"}, flags...)
	command := exec.Command("/bin/sh", flags...) //nolint:noctx // It ends with its input.
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(f.dir, name), "RUNTIME_NAMESPACE="+Namespace, "TMPDIR="+t.TempDir(),
		"HOME="+t.TempDir())
	// Interrupts from the terminal are for the test, whose end ends the controller.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Stdout, command.Stderr = log, log
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait() // It was ended by a signal.
		if t.Failed() {
			t.Logf("%s:\n%s", name, endOf(file))
		}
	})
	testkit.EventuallyWithin(t, testkit.Timeout, name+" is ready", func(ctx context.Context) error {
		if err := healthy(ctx, "http://"+health+"/readyz"); err != nil {
			return fmt.Errorf("%w\n%s", err, endOf(file))
		}
		return nil
	})
}

func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", url, response.Status)
	}
	return nil
}

// endOf returns the end of a log.
func endOf(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-shownLog):])
}

// firstPort and lastPort are below the ports of outgoing connections, so that none takes one between the check and the start of a
// controller, and below those of development clusters.
const firstPort, lastPort = 15000, 17999

// freeAddress returns an address of loopback on which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	for _, offset := range rand.Perm(lastPort - firstPort) {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+offset)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
