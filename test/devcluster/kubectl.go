// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Kubectl runs kubectl as a user.
type Kubectl struct {
	// Program is the path of kubectl.
	Program string
	// User is the kubeconfig.
	User Kubeconfig
}

// Kubectl returns the control plane's kubectl for the given user.
func (c *Cluster) Kubectl(user Kubeconfig) Kubectl {
	return Kubectl{Program: c.state.Programs.Kubectl, User: user}
}

// Run runs kubectl and returns its output; an error contains
// its error output.
func (k Kubectl) Run(ctx context.Context, arguments ...string) (string, error) {
	return k.run(ctx, "", arguments)
}

// Feed runs kubectl with the text as its input, as in Feed(ctx, manifests, "apply",
// "-f", "-").
func (k Kubectl) Feed(ctx context.Context, input string, arguments ...string) (string, error) {
	// Older versions decode YAML that begins with a brace as JSON, and fail.
	if strings.HasPrefix(strings.TrimSpace(input), "{") && !slices.Contains(arguments, "--raw") {
		input = "---\n" + input
	}
	return k.run(ctx, input, arguments)
}

// Command returns kubectl with the arguments, ready to be started, for callers that
// read its output incrementally.
func (k Kubectl) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, k.Program, arguments...)
	// The discovery cache of kubectl is beside the kubeconfig, so that clusters do not share it.
	command.Env = append(os.Environ(), "KUBECONFIG="+string(k.User), "KUBECACHEDIR="+string(k.User)+".cache")
	// Commands are so short that collecting garbage would take a third of their time.
	command.Env = append(command.Env, "GOGC=off", "GOMEMLIMIT=1GiB")
	return command
}

// kubectl wait fails immediately for an object without conditions. It is retried up to attempts times.
const (
	noConditions = ".status.conditions accessor error: <nil>"
	attempts     = 100
	pause        = 100 * time.Millisecond
)

func (k Kubectl) run(ctx context.Context, input string, arguments []string) (out string, err error) {
	for range attempts {
		out, err = k.runOnce(ctx, input, arguments)
		if err == nil || arguments[0] != "wait" || !strings.Contains(err.Error(), noConditions) {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return out, err
}

func (k Kubectl) runOnce(ctx context.Context, input string, arguments []string) (string, error) {
	command := k.Command(ctx, arguments...)
	command.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
