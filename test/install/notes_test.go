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

// followNotes runs every command that helm says after it has installed.
func (s *stage) followNotes(t *testing.T, notes string) {
	t.Helper()
	commands := commandsOf(notes)
	if len(commands) < 6 {
		t.Fatalf("helm names the commands %q only", commands)
	}
	standIn := strings.NewReplacer(
		// kubectl exec and logs go through a kubelet, and none is there.
		"kubectl -n "+namespace+" exec deploy/slipstream -- /slipstream backup", s.program+` backup --data-dir "$DATA"`,
		"logs deploy/slipstream", "get deploy/slipstream",
		// Its effect has a scene of its own.
		"kubectl delete", "kubectl delete --dry-run=server",
	)
	path := filepath.Dir(s.Administrator.Program) + ":" + filepath.Dir(s.helm)
	for _, command := range commands {
		s.do(t, "", "bash", "-euc", `PATH=$1:$PATH DATA=$(echo "$2"/*); cd "$3"; `+standIn.Replace(command), "bash", path, s.claims, t.TempDir())
	}
}

// commandsOf are the commands in what helm says: on lines of their own, or behind a colon.
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

// beginsCommand finds commands, those in a shell of their own among them.
var beginsCommand = regexp.MustCompile(`^\(?(umask 077; )?(kubectl|helm) `)
