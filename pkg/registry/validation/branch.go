// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxBranchLength leaves room for the suffix of Git's lock file: file names are limited to 255 bytes.
const maxBranchLength = 244

func validateBranch(branch string, path *field.Path) field.ErrorList {
	if branch == "" {
		return field.ErrorList{field.Required(path, "name the branch to write, such as main")}
	}
	if detail := refusedBranch(branch); detail != "" {
		return field.ErrorList{field.Invalid(path, branch, detail)}
	}
	return nil
}

// refusedBranch returns why a name is no valid branch by the rules of git check-ref-format --branch, or an empty
// string.
func refusedBranch(branch string) string {
	switch {
	case strings.HasPrefix(branch, "refs/"):
		return "must be the branch's name alone, without refs/heads/"
	case branch == "HEAD" || branch == "@" || strings.HasPrefix(branch, "-"):
		return "must not be HEAD or @, nor begin with -"
	case strings.Contains(branch, "..") || strings.Contains(branch, "@{") || strings.HasSuffix(branch, "."):
		return "must not contain .. or @{, nor end with ."
	case strings.ContainsAny(branch, `~^:?*[\`):
		return `must not contain ~ ^ : ? * [ or \`
	}
	return refusedRefPath(branch)
}

// refusedRefPath returns what is wrong with the segments of a branch name or glob, or an empty string.
func refusedRefPath(name string) string {
	switch {
	case len(name) > maxBranchLength:
		return "must have at most 244 bytes"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isSpaceOrControl):
		return "must be UTF-8 without spaces and control characters"
	case slices.Contains(strings.Split(name, "/"), ""):
		return "must not begin or end with /, nor contain //"
	case slices.ContainsFunc(strings.Split(name, "/"), func(segment string) bool {
		return strings.HasPrefix(segment, ".") || strings.HasSuffix(segment, ".lock")
	}):
		return "must not have a path segment that begins with . or ends with .lock"
	}
	return ""
}

func validateAllowedBranches(globs []string, fldPath *field.Path) field.ErrorList {
	if n := len(globs); n > v1alpha1.MaxAllowedBranches {
		return field.ErrorList{field.TooMany(fldPath, n, v1alpha1.MaxAllowedBranches)}
	}
	errs := validateUnique(globs, fldPath)
	for i, glob := range globs {
		if detail := refusedGlob(glob); detail != "" {
			errs = append(errs, field.Invalid(fldPath.Index(i), glob, detail))
		}
	}
	return errs
}

func refusedGlob(glob string) string {
	if glob == "" {
		return "must be a branch such as main or a glob such as release/*"
	}
	if !strings.ContainsAny(glob, `*?[\`) {
		return refusedBranch(glob)
	}
	if _, err := path.Match(glob, ""); err != nil {
		return `must be a branch or a glob: * matches within one path segment, ? one character, [a-z] a range`
	}
	return refusedRefPath(glob)
}
