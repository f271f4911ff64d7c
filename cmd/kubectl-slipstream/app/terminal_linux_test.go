// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// onTerminal runs the plugin on a terminal until it has shown a text, and returns what it has shown.
func onTerminal(t *testing.T, columns, rows uint16, until, url string, args ...string) string {
	t.Helper()
	screen, terminal := testkit.OpenTerminal(t, columns, rows)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: terminal, ErrOut: io.Discard}
	command := app.NewCommand(streams)
	command.SetArgs(append(args, "--server", url, "--kubeconfig", os.DevNull))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.ExecuteContext(ctx) // It is interrupted.
		_ = terminal.Close()            // Reads end.
	}()
	var shown strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(shown.String(), until) {
		n, err := screen.Read(buffer)
		if err != nil {
			t.Fatalf("the command has ended without %q: %s", until, shown.String())
		}
		shown.Write(buffer[:n])
	}
	cancel()
	<-ended
	return strings.ReplaceAll(shown.String(), "\r", "")
}

func TestStatusOnATerminal(t *testing.T) {
	s := serveTables(t, inTeams())
	got := onTerminal(t, 66, 40, "unseen", s.URL, "status", "-n", "teams")
	for _, want := range []string{
		"├─ environment/bob     Held: window o...  r41→r42  yes   window\n",
		"├─ environment/fix-17  \x1b[31mConflict: 2 fi...\x1b[m  r40→r42  no    you\n", "└─ environment/prod    Synced",
		"catalog/old            \x1b[31mThe namespace ...\x1b[m",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	t.Setenv("NO_COLOR", "1")
	if got := onTerminal(t, 66, 40, "unseen", s.URL, "status", "-n", "teams"); strings.Contains(got, "\x1b") {
		t.Errorf("coloured with NO_COLOR: %q", got)
	}
}

// TestStatusIsDrawnAgain checks that a terminal shows the whole tree after a change, as far as it fits.
func TestStatusIsDrawnAgain(t *testing.T) {
	s := serveTables(t, inTeams())
	s.events["namespaces/teams/environments"] = []metav1.WatchEvent{eventOf("MODIFIED", tableOf("environments",
		[]any{"teams", "alice", "shop", "no", "shop-alice", "Syncing", 41, "3/3", 42, "sync", "Progressing"}))}
	got := onTerminal(t, 100, 9, "Syncing", s.URL, "status", "-n", "teams", "-w")
	if !strings.HasPrefix(got, "\x1b[H\x1b[2JNAME") || strings.Contains(got, "environment/fix-17") || !strings.Contains(got, "... and 4 more lines\n") {
		t.Errorf("shown:\n%s", got)
	}
	if got := onTerminal(t, 100, 1, "more lines", s.URL, "status", "-n", "teams", "-w"); strings.Contains(got, "NAME") {
		t.Errorf("shown on one line:\n%s", got)
	}
}

// TestDriftOnATerminal checks colours, and the arrow between values.
func TestDriftOnATerminal(t *testing.T) {
	s := lackingServer(t, map[string]any{alice + "/diff": planOf(image())}, v1alpha1.EnvironmentStatus{})
	got := onTerminal(t, 100, 40, "unchanged", s.URL, "diff", "alice", "-n", "teams")
	for _, want := range []string{
		"\x1b[1m~ Deployment/web  spec.template.spec.containers[web].image\x1b[m\n", "\x1b[31m    - shop/web:1.8\x1b[m\n",
		"\x1b[32m    + shop/web:1.9       jane@example.com, audit, commit 4f2c9e1, 61m ago\x1b[m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%q", want, got)
		}
	}
	got = onTerminal(t, 100, 40, "  do  ", s.URL, "explain-drift", "alice", "-n", "teams")
	if !strings.Contains(got, "image shop/web:1.8 → shop/web:1.9") {
		t.Errorf("explained: %q", got)
	}
}
