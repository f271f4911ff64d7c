// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllertest runs the controllers of other projects in clusters of tests.
package controllertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// buildLimit is longer than it takes to build a controller on a busy machine.
	buildLimit = 40 * time.Minute
	// shownLog is the size of the shown end of a log, in bytes.
	shownLog = 6000
)

// Controller is a program that can be started and stopped.
type Controller struct {
	// Name is the name of its account, and Namespace the namespace.
	Name, Namespace string
	// Program is its path. Install sets it.
	Program string
	// Flags and Env are its arguments, and KEY=VALUE lines added to its environment.
	Flags, Env []string
	// Ready returns an error unless the program is ready.
	Ready func(ctx context.Context) error

	// dir has the files of the controller.
	dir     string
	command *exec.Cmd
	// input is the supervisor's standard input.
	input io.Closer
}

// account is the user as which a controller sends its requests.
func (c *Controller) account() string {
	return "system:serviceaccount:" + c.Namespace + ":" + c.Name
}

// Install builds the program of the controller, which takes minutes the first time, and applies its definitions. It gives its account all
// permissions. The namespace must exist.
func (c *Controller) Install(t testing.TB, cluster *devcluster.Cluster, tool programs.Tool) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	if c.Program, err = tool.Build(ctx, root); err != nil {
		t.Fatalf("failed to build %s: %v", c.Name, err)
	}
	module, err := tool.Files(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join(module, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("%s has no definitions: %v", c.Name, err)
	}
	objects := mirrortest.ObjectsOf(t, cluster.Admin())
	for _, file := range definitions {
		definition, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects.Apply(t, string(definition))
	}
	objects.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[3]s"}]
`, c.Namespace, c.Name, c.account()))
	c.Prepare(t)
	c.writeKubeconfig(t, cluster)
}

// Prepare creates the folder for the files of a program that Install does not build. The program is stopped when the test ends.
func (c *Controller) Prepare(t testing.TB) {
	t.Helper()
	c.dir = t.TempDir()
	t.Cleanup(func() {
		c.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", c.Name, c.endOfLog())
		}
	})
}

// writeKubeconfig writes the kubeconfig of the account. The name of the user is in that of the cluster's file, and $KUBECONFIG takes a
// colon for the end of a path.
func (c *Controller) writeKubeconfig(t testing.TB, cluster *devcluster.Cluster) {
	t.Helper()
	user, err := cluster.User(c.account(), "system:serviceaccounts", "system:serviceaccounts:"+c.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(string(user))
	if err == nil {
		err = os.WriteFile(c.file("kubeconfig"), kubeconfig, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// file returns the path of one of the controller's files. Their folder is also that of its temporary files, and its home.
func (c *Controller) file(name string) string { return filepath.Join(c.dir, c.Name+"-"+name) }

// supervisor runs a program until its own input ends, which is when the process that started it has ended, for whatever reason. Its first
// argument is the file for the id of the program's process.
const supervisor = `id=$1; shift; "$0" "$@" & echo $! > "$id"; cat; kill $! && wait $!`

// Start runs the program until Stop is called or the test ends, and waits until it is ready.
func (c *Controller) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(c.file("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	_ = os.Remove(c.file("pid")) // that of an earlier start, if any
	flags := append([]string{"-c", supervisor, c.Program, c.file("pid")}, c.Flags...)
	c.command = exec.Command("/bin/sh", flags...) //nolint:noctx // It ends with its input.
	c.command.Env = append(os.Environ(), "KUBECONFIG="+c.file("kubeconfig"), "TMPDIR="+c.dir, "HOME="+c.dir)
	c.command.Env = append(c.command.Env, c.Env...)
	// Interrupts from the terminal are for the test, whose end ends the controller.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.command.Stdout, c.command.Stderr = log, log
	if c.input, err = c.command.StdinPipe(); err == nil {
		err = c.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyWithin(t, testkit.Timeout, c.Name+" is ready", func(ctx context.Context) error {
		if _, err := os.Stat(c.file("pid")); err != nil {
			return err
		}
		if err := c.Ready(ctx); err != nil {
			return testkit.Described(err, func(context.Context) string { return c.endOfLog() })
		}
		return nil
	})
}

// Stop ends the program and waits until it has ended, if it runs.
func (c *Controller) Stop() {
	if c.command == nil {
		return
	}
	_ = c.input.Close()
	_ = c.command.Wait() // It was ended by a signal.
	c.command = nil
}

// PID returns the id of the running program's process.
func (c *Controller) PID(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile(c.file("pid"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// Healthy returns a check that a URL returns 200.
func Healthy(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
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
			return errors.New(url + " returned " + response.Status)
		}
		return nil
	}
}

// endOfLog returns the end of the log.
func (c *Controller) endOfLog() string {
	content, err := os.ReadFile(c.file("log"))
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-shownLog):])
}
