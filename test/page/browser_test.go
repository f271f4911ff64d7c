// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// step does what a scenario asks for.
func (s *testCluster) step(t *testing.T, name string, arguments json.RawMessage) (any, error) {
	t.Helper()
	var args struct {
		// User is whose dashboard, or whose kubectl.
		User string
		// Line are the arguments of kubectl, Input its input.
		Line  []string
		Input string
		// Paused is whether the process of a dashboard is stopped.
		Paused bool
		// Action is what the scenario asks for about the hosted page.
		Action string
		// Cut is whether a connection is cut.
		Cut bool
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, err
	}
	switch name {
	case "link":
		return s.dashboard(t, args.User).Link(t), nil
	case "restart":
		s.dashboard(t, args.User).Restart(t)
		return nil, nil
	case "pause":
		return nil, s.dashboard(t, args.User).Pause(args.Paused)
	case "cut":
		s.wire.Sever(args.Cut)
		return nil, nil
	case "hosted":
		return s.hostedStep(t, args.Action)
	case "kubectl":
		out, err := s.person(t, args.User).Kubectl.Feed(t.Context(), args.Input, args.Line...)
		return strings.TrimSpace(out), err
	}
	return nil, fmt.Errorf("unknown step %s", name)
}
