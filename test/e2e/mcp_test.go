// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// servesMCP asks the plugin's program, on its standard input and output, what changed and what it was before.
func servesMCP(t *testing.T, s *shop) {
	s.putConfigMap(t, "note", map[string]string{"color": "red"})
	commit := s.tip(t)
	s.putConfigMap(t, "note", map[string]string{"color": "blue"})
	change := s.change(t, s.tip(t))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": "first one"}}
	_, err := s.client.CoreV1().Secrets(s.Namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	s.change(t, s.tip(t))
	ask := s.assistant(t)

	recorded, err := s.changes.ConfigbutlerV1alpha1().Changes(s.Namespace).Get(t.Context(), change, metav1.GetOptions{})
	must(t, err)
	var changes struct {
		Data struct {
			Changes []struct{ Change, Who, Operation string }
		}
	}
	must(t, json.Unmarshal([]byte(ask("changes", map[string]any{"since": "1h", "object": "configmap/note"})), &changes))
	got := changes.Data.Changes
	if len(got) != 2 || got[0].Change != s.Namespace+"/"+change || got[0].Operation != "Update" || got[1].Operation != "Create" {
		t.Errorf("changes %+v", got)
	}
	if author := recorded.Spec.Author; author != nil && got[0].Who != author.Username {
		t.Errorf("%q instead of %+v", got[0].Who, author)
	}
	for _, test := range []struct {
		tool, argument, value, want string
	}{
		{"diff", "change", got[0].Change, `-  color: red\n+  color: blue\n`},
		{"state", "at", commit, `color: red\n`},
		{"state", "at", got[0].Change + "^", `color: red\n`},
		{"blame", "object", "configmap/note", "color: blue"},
	} {
		arguments := map[string]any{test.argument: test.value}
		if test.tool == "state" {
			arguments["object"] = "configmap/note"
		}
		if text := ask(test.tool, arguments); !strings.Contains(text, test.want) {
			t.Errorf("%s %v returned %s", test.tool, arguments, text)
		}
	}
	text := ask("state", map[string]any{"object": "secret/database"})
	if !strings.Contains(text, "password") || strings.Contains(text, "first one") || strings.Contains(text, "Zmlyc3Qgb25l") {
		t.Errorf("the Secret: %s", text)
	}
}

// assistant starts the plugin's program with an MCP client, and returns a function that calls a tool, which must not fail.
func (s *shop) assistant(t *testing.T) (ask func(tool string, arguments map[string]any) string) {
	t.Helper()
	program := clustertest.Program(t, "cmd/kubectl-slipstream")
	// The plugin ends when the client closes its input.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "mcp", "-n", s.Namespace, "--kubeconfig", string(s.Admin()), "--cache-dir", t.TempDir())
	var log strings.Builder
	command.Stderr = &log
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	must(t, err)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("the plugin: %v\n%s", err, &log)
		}
	})
	return func(tool string, arguments map[string]any) string {
		t.Helper()
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		must(t, err)
		text := result.Content[0].(*mcp.TextContent).Text
		if result.IsError {
			t.Fatalf("%s %v failed: %s", tool, arguments, text)
		}
		return text
	}
}
