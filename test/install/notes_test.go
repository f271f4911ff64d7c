// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// followNotes runs every command of the release notes of helm.
func (s *testCluster) followNotes(t *testing.T, notes string) {
	t.Helper()
	commands := commandsOf(notes)
	if len(commands) < 6 {
		t.Fatalf("commands in the notes: %q", commands)
	}
	standIn := strings.NewReplacer(
		// kubectl exec and logs require a kubelet.
		"kubectl -n "+namespace+" exec deploy/slipstream -- /slipstream backup", s.program+` backup --data-dir "$DATA"`,
		"logs deploy/slipstream", "get deploy/slipstream",
		// Another test covers its effect.
		"kubectl delete", "kubectl delete --dry-run=server",
	)
	path := filepath.Dir(s.Administrator.Program) + ":" + filepath.Dir(s.helm)
	for _, command := range commands {
		s.do(t, "", "bash", "-euc", `PATH=$1:$PATH DATA=$(echo "$2"/*); cd "$3"; `+standIn.Replace(command), "bash", path, s.claims, t.TempDir())
	}
}

// commandsOf returns the commands of the notes: on separate lines, or after a colon.
func commandsOf(notes string) []string {
	var commands []string
	for line := range strings.Lines(notes) {
		command := strings.TrimSpace(line)
		if _, behind, found := strings.Cut(command, ": kubectl "); found {
			command = "kubectl " + behind
		}
		if strings.HasPrefix(line, " ") && beginsCommand.MatchString(command) {
			commands = append(commands, command)
		}
	}
	return commands
}

// beginsCommand matches commands, also in a subshell.
var beginsCommand = regexp.MustCompile(`^\(?(umask 077; )?(kubectl|helm) `)
