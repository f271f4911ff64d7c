// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain plays the victim when it is started as a child of TestReachKillsTheProcess.
func TestMain(m *testing.M) {
	if os.Getenv("FAILPOINT_VICTIM") == "" {
		os.Exit(m.Run())
	}
	for range 3 {
		Reach("other")
		fmt.Println("before")
		Reach("step")
		fmt.Println("after")
	}
	os.Exit(0)
}

func TestReachKillsTheProcess(t *testing.T) {
	tests := []struct {
		name, points string
		want         string
		killed       bool
	}{
		{name: "not armed", points: "", want: "before after before after before after"},
		{name: "another name", points: "elsewhere=kill", want: "before after before after before after"},
		{name: "the first time", points: "step=kill", want: "before", killed: true},
		{name: "the second time", points: "elsewhere=kill, step=kill@2", want: "before after before", killed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			victim := exec.CommandContext(t.Context(), os.Args[0])
			victim.Env = append(os.Environ(), "FAILPOINT_VICTIM=1", environment+"="+tt.points)
			out, err := victim.Output()
			if got := strings.Join(strings.Fields(string(out)), " "); got != tt.want {
				t.Errorf("steps done = %q, want %q", got, tt.want)
			}
			status := victim.ProcessState.Sys().(syscall.WaitStatus)
			if got := status.Signaled() && status.Signal() == syscall.SIGKILL; got != tt.killed {
				t.Errorf("killed = %v (%v), want %v", got, err, tt.killed)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"step", "=kill", "step=pause", "step=kill@0", "step=kill@x", "step=kill@"} {
		if _, err := parse(text); err == nil {
			t.Errorf("parse(%q) succeeded, want an error", text)
		}
	}
}
