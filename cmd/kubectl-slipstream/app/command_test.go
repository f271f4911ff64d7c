// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestWrongArguments checks that errors about arguments say which one is meant and where the help is.
func TestWrongArguments(t *testing.T) {
	s := serve(t, nil)
	for args, want := range map[string]string{
		"statsu":        "unknown command \"statsu\" for \"kubectl slipstream\"\n\nDid you mean this?\n\tstatus\n",
		"rediscover":    "ENVIRONMENT or -l SELECTOR is missing\nSee 'kubectl slipstream rediscover --help'",
		"dismiss":       "ENVIRONMENT or syncstatus/NAME or [TYPE] -l SELECTOR is missing\nSee 'kubectl slipstream dismiss --help'",
		"resolve":       "ENVIRONMENT is missing\nSee 'kubectl slipstream resolve --help'",
		"explain-drift": "ENVIRONMENT is missing\nSee 'kubectl slipstream explain-drift --help'",
		"mirror x --to y": "unknown command \"x\" for \"kubectl slipstream mirror\"\n" +
			"See 'kubectl slipstream mirror --help'",
		"catalog":            "NAME is missing\nSee 'kubectl slipstream catalog --help'",
		"secretdiff one two": "accepts 1 arg(s), received 2\nSee 'kubectl slipstream secretdiff --help'",
	} {
		out, _, code, err := s.callExactly(t.Context(), strings.Fields(args)...)
		if code != 2 || err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: exit code %d, printed %q: %v", args, code, out, err)
		}
	}
}

// TestWarnings checks that warnings of the server are printed once each, whichever client the command has.
func TestWarnings(t *testing.T) {
	s := conflictingServer(t)
	handler := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "it is deprecated"`)
		handler.ServeHTTP(w, r)
	})
	s.answers[ofTeams+"appcatalogs/shop"] = named("AppCatalog", "shop")
	for _, args := range []string{"resolve alice --keep", "pause catalog/shop"} {
		_, notes, code, err := s.in(t, strings.Fields(args)...)
		if code != 0 || err != nil || strings.Count(notes, "Warning: it is deprecated\n") != 1 {
			t.Errorf("%s: exit code %d, noted %q: %v", args, code, notes, err)
		}
	}
}
