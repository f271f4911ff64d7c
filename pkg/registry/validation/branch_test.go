// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func branches() []string {
	return []string{
		"main", "feature/x", "release-1.0", "a@b", "@a", "ünï", "a{b", "a.b", "v1.0.x", "a-", "x/y/z", "a.lockx", "head",
		"", "HEAD", "@", "-a", ".a", "a/.b", "a.lock", "a.lock/b", "a..b", "a.", "a/", "/a", "a//b", "a@{b", "a b",
		"a\tb", "a\x7fb", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", `a\b`, "a\nb",
	}
}

func branchErrors(branch string) string {
	errs := validation.ValidateGitDestination(with(destination(), func(d *configbutler.GitDestination) { d.Spec.Branch = branch }))
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

func TestBranchesAreThoseThatGitAdmits(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("git is needed: %v", err)
	}
	for _, branch := range branches() {
		t.Run(branch, func(t *testing.T) {
			admitted := exec.Command(git, "check-ref-format", "refs/heads/"+branch).Run() == nil &&
				exec.Command(git, "check-ref-format", "--branch", branch).Run() == nil && branch != "@"
			if problem := branchErrors(branch); (problem == "") != admitted {
				t.Errorf("git admits it: %v; validation says %q", admitted, problem)
			}
		})
	}
}

func TestBranchesThatGitAdmitsAndWeRefuse(t *testing.T) {
	tests := []struct{ branch, says string }{
		{"refs/heads/main", "without refs/heads/"},
		{strings.Repeat("a", 245), "at most 244 bytes"},
		{"a\u00a0b", "without spaces"},
		{"a\xff", "UTF-8"},
	}
	for _, test := range tests {
		if problem := branchErrors(test.branch); !strings.Contains(problem, test.says) {
			t.Errorf("%q: want an error that says %q, got %q", test.branch, test.says, problem)
		}
	}
}
