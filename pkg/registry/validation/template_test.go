// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// What templates may hold is tested where they are read, in pkg/mirror/commitmessage.
func TestTemplates(t *testing.T) {
	tests := []struct {
		name   string
		policy configbutler.CommitPolicy
		path   string
		says   string
	}{
		{name: "none"},
		{name: "both", policy: configbutler.CommitPolicy{AuthorTemplate: `{{.Username}} <{{.Email}}>`, MessageTemplate: `{{.Subject}}`}},
		{
			name: "an author without an address", policy: configbutler.CommitPolicy{AuthorTemplate: `{{.Username}}`},
			path: "spec.commit.authorTemplate", says: `must write one line of the form "Name <email>"`,
		},
		{
			name: "an unknown field", policy: configbutler.CommitPolicy{MessageTemplate: "subject\n\n{{.Nothing}}"},
			path: "spec.commit.messageTemplate", says: "must be a Go text/template: line 3: must not use .Nothing; known here are .Attribution",
		},
		{
			name: "too long", policy: configbutler.CommitPolicy{MessageTemplate: strings.Repeat("a", 4097)},
			path: "spec.commit.messageTemplate", says: "4096",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := repository()
			config.Spec.Commit = &test.policy
			want := change[struct{}]{path: test.path, says: test.says}
			want.check(t, validation.ValidateGitRepoConfig(config, validation.Options{}))
		})
	}
}
