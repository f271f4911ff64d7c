// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Isolate the git commands of the tests and of the file transport from the configuration of the machine.
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
		"GIT_AUTHOR_NAME": "other", "GIT_AUTHOR_EMAIL": "other@example.com",
		"GIT_COMMITTER_NAME": "other", "GIT_COMMITTER_EMAIL": "other@example.com",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if task := os.Getenv(clientVariable); task != "" {
		os.Exit(runClient(task))
	}
	goleak.VerifyTestMain(m)
}
