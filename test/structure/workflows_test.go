// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is the part of a workflow of GitHub Actions that the rules are about. An action of this repository has only Runs.
type workflow struct {
	// On is the key on, which is a boolean in YAML 1.1.
	On          any                `json:"true"`
	Permissions *map[string]string `json:"permissions"`
	Concurrency *map[string]any    `json:"concurrency"`
	Jobs        map[string]job     `json:"jobs"`
	Runs        job                `json:"runs"`
}

type job struct {
	Uses        string             `json:"uses"`
	Timeout     int                `json:"timeout-minutes"`
	Permissions *map[string]string `json:"permissions"`
	// Secrets is a map, or the text inherit.
	Secrets any `json:"secrets"`
	Steps   []struct {
		Uses string            `json:"uses"`
		Run  string            `json:"run"`
		Env  map[string]string `json:"env"`
	} `json:"steps"`
}

// dependabot is the part of Dependabot's configuration that the rules are about.
type dependabot struct {
	Updates []struct {
		Ecosystem   string   `json:"package-ecosystem"`
		Directories []string `json:"directories"`
		Ignore      []struct {
			Name  string   `json:"dependency-name"`
			Types []string `json:"update-types"`
		} `json:"ignore"`
	} `json:"updates"`
}

var (
	usesLine     = regexp.MustCompile(`(?m)^[- ]*uses: *(.*)$`)
	pinnedAction = regexp.MustCompile(`^[\w-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	makeCommand  = regexp.MustCompile(`(?m)(?:^|[\s;&|(])make((?:[ \t]+[^\s;&|<>)]+)*)`)
	expression   = regexp.MustCompile(`(?s)\$\{\{.*?\}\}`)
	secretName   = regexp.MustCompile(`(?i)\bsecrets\b(?:\s*\.\s*(\w+))?`)
	ownCode      = regexp.MustCompile(`(?:^|[\s;&|("'])(?:make|go|(?:\S*/)?hack/\S+|\./\S+)(?:$|[\s;&|)"'])`)
	phonyTargets = regexp.MustCompile(`(?m)^\.PHONY: (.+)$`)
	goDirective  = regexp.MustCompile(`(?m)^go (\d+\.\d+)\.\d+$`)
	goVersion    = regexp.MustCompile(`(?m)^ *go-version: (.+)$`)
)

func TestWorkflowsFollowRules(t *testing.T) {
	tree := os.DirFS("../..")
	targets := phony(t, tree)
	files := workflowFiles(t, tree)
	if len(files) < 5 {
		t.Fatalf("found only %q", files)
	}
	for _, name := range files {
		for _, violation := range checkWorkflow(name, read(t, tree, name), targets) {
			t.Errorf("%s: %s", name, violation)
		}
	}
}

func TestRulesFindViolationsInWorkflows(t *testing.T) {
	const action = "actions/checkout@0123456789abcdef0123456789abcdef01234567"
	targets := map[string]bool{"test": true, "verify": true}
	valid := "permissions: {}\nconcurrency: {group: a}\njobs:\n  a:\n    permissions: {contents: read}\n    timeout-minutes: 5\n    steps:\n"
	identity := strings.Replace(valid, "contents: read", "id-token: write", 1)
	writing := strings.Replace(valid, "contents: read", "packages: write", 1)
	env := func(of string) string { return "    - uses: ./a\n      env: {A: \"${{ " + of + " }}\"}\n" }
	pages := strings.NewReplacer("group: a", "group: a, cancel-in-progress: true", "contents: read", "pages: write").Replace(valid)
	for name, test := range map[string]struct{ text, want string }{
		"valid":                    {valid + "    - uses: " + action + " # v1.2.3\n    - uses: ./.github/actions/setup\n    - run: sudo make -s test V=\"x\"\n", ""},
		"several commands":         {valid + "    - run: |\n        make test && make verify; echo make\n        cmake other\n", "make without a target"},
		"missing target":           {valid + "    - run: make test other\n", "the Makefile has no target other"},
		"tag":                      {valid + "    - uses: actions/checkout@v4\n", "actions/checkout@v4 is not pinned by a commit, with its version as a comment"},
		"no version":               {valid + "    - uses: " + action + "\n", action + " is not pinned by a commit, with its version as a comment"},
		"secret":                   {valid + env("secrets.GITHUB_TOKEN") + env("SECRETS .OTHER"), "uses the secret OTHER"},
		"key outside of releases":  {valid + env("secrets.COSIGN_PASSWORD"), "uses the secret COSIGN_PASSWORD"},
		"all secrets":              {valid + env("toJSON(secrets)"), "uses secrets without a name: ${{ toJSON(secrets) }}"},
		"secret by expression":     {valid + env("secrets['OTHER']"), "uses secrets without a name: ${{ secrets['OTHER'] }}"},
		"inherited secrets":        {"permissions: {}\nconcurrency: {group: a}\njobs: {a: {uses: ./a, permissions: {}, secrets: inherit}}", "job a passes secrets on"},
		"expression in a script":   {valid + "    - run: echo ${{ github.ref_name }}\n", "has ${{ github.ref_name }} in a script: pass it in env"},
		"pull requests of others":  {"on: pull_request_target\n" + valid, "runs pull requests of others with the rights of this repository"},
		"pull requests in a list":  {"on: [push, pull_request_target]\n" + valid, "runs pull requests of others with the rights of this repository"},
		"pull requests in a map":   {"on: {pull_request_target: {types: [opened]}}\n" + valid, "runs pull requests of others with the rights of this repository"},
		"identity with make":       {identity + "    - run: make test\n", "job a runs code of the repository with an identity"},
		"identity with go":         {identity + "    - run: cd hack && go run ./release\n", "job a runs code of the repository with an identity"},
		"identity with a script":   {identity + "    - run: bash hack/publish-release.sh\n", "job a runs code of the repository with an identity"},
		"identity with an action":  {identity + "    - uses: ./.github/actions/setup\n", "job a runs code of the repository with an identity"},
		"attestation with make":    {strings.Replace(identity, "id-token", "attestations", 1) + "    - run: make test\n", "job a runs code of the repository with an identity"},
		"identity":                 {identity + "    - run: docker login ghcr.io\n", ""},
		"publication":              {writing + "    - run: hack/build-release-tools.sh tools\n    - run: hack/publish-release.sh v1.2.3 dist\n      env: {KEY: x}\n", ""},
		"tools with a secret":      {writing + "    - run: hack/build-release-tools.sh tools\n      env: {KEY: x}\n", "job a builds with the right to write"},
		"publication and more":     {writing + "    - run: hack/publish-release.sh v1.2.3 dist && go run ./other\n", "job a builds with the right to write"},
		"nothing":                  {"jobs: {a: {}}", "does not set permissions; has no concurrency; job a does not set permissions; job a has no timeout"},
		"write permission for all": {strings.Replace(valid, "{}", "{contents: write}", 1), "gives write to contents to all jobs"},
		"waiting runs cancelled":   {"on: {push: {branches: [main]}}\n" + valid, "cancels waiting runs of a branch: the group has no github.run_id"},
		"older pages":              {strings.Replace(valid, "contents: read", "pages: write", 1), "can replace newer pages by older ones: a new run does not cancel the others"},
		"newest pages":             {"on: {push: {branches: [main]}}\n" + pages, ""},
		"build with write":         {writing + "    - run: make test\n", "job a builds with the right to write"},
		"publication with a build": {pages + "    - run: make test\n", "job a builds with the right to write"},
		"called workflow":          {"permissions: {}\nconcurrency: {group: a}\njobs: {a: {uses: ./a, permissions: {}}}", ""},
		"action":                   {"runs:\n  steps:\n  - run: make other\n", "the Makefile has no target other"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(checkWorkflow("ci.yaml", []byte(test.text), targets), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDependenciesAreUpdated checks that Dependabot updates all modules, packages and actions of the repository.
func TestDependenciesAreUpdated(t *testing.T) {
	tree := os.DirFS("../..")
	var config dependabot
	unmarshal(t, read(t, tree, ".github/dependabot.yml"), &config)
	got := map[string][]string{}
	for _, update := range config.Updates {
		got[update.Ecosystem] = slices.Sorted(slices.Values(append(got[update.Ecosystem], update.Directories...)))
	}
	want := map[string][]string{"gomod": folders(t, tree, "go.mod"), "npm": folders(t, tree, "package.json"), "github-actions": {"/"}}
	for _, name := range workflowFiles(t, tree) {
		if path.Base(name) == "action.yaml" {
			want["github-actions"] = append(want["github-actions"], "/"+path.Dir(name))
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf(".github/dependabot.yml has %q, want %q", got, want)
	}
}

// TestWorkflowsUseTheGoVersionOfTheModule checks that workflows use the newest patch release of the Go version in go.mod.
func TestWorkflowsUseTheGoVersionOfTheModule(t *testing.T) {
	tree := os.DirFS("../..")
	module := goDirective.FindSubmatch(read(t, tree, "go.mod"))
	if module == nil {
		t.Fatal("go.mod has no version of Go")
	}
	found := 0
	for _, name := range workflowFiles(t, tree) {
		for _, match := range goVersion.FindAllSubmatch(read(t, tree, name), -1) {
			found++
			if want := string(module[1]) + ".x"; string(match[1]) != want {
				t.Errorf("%s: go-version is %s, want %s", name, match[1], want)
			}
		}
	}
	if found == 0 {
		t.Error("no workflow sets go-version")
	}
}

// checkWorkflow returns the violations in a workflow, or in an action of this repository.
func checkWorkflow(name string, text []byte, targets map[string]bool) []string {
	var parsed workflow
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		return []string{err.Error()}
	}
	violations := append(checkUses(text), checkSecrets(name, text)...)
	if parsed.isStartedBy("pull_request_target") {
		violations = append(violations, "runs pull requests of others with the rights of this repository")
	}
	if len(parsed.Jobs) > 0 {
		violations = append(violations, checkPermissions(parsed)...)
	}
	for _, name := range slices.Sorted(maps.Keys(parsed.Jobs)) {
		each := parsed.Jobs[name]
		if each.Secrets != nil {
			violations = append(violations, fmt.Sprintf("job %s passes secrets on", name))
		}
		if each.Permissions == nil {
			violations = append(violations, fmt.Sprintf("job %s does not set permissions", name))
		}
		if each.Uses == "" && each.Timeout == 0 {
			violations = append(violations, fmt.Sprintf("job %s has no timeout", name))
		}
		violations = append(violations, checkTargets(each, targets)...)
		violations = append(violations, checkExpressions(each)...)
		violations = append(violations, checkWriting(name, each)...)
	}
	violations = append(violations, checkExpressions(parsed.Runs)...)
	return append(violations, checkTargets(parsed.Runs, targets)...)
}

// checkExpressions allows no expression in a script, which would run what the value contains.
func checkExpressions(j job) []string {
	var violations []string
	for _, step := range j.Steps {
		for _, found := range expression.FindAllString(step.Run, -1) {
			violations = append(violations, "has "+found+" in a script: pass it in env")
		}
	}
	return violations
}

// checkSecrets allows no secret but the token of the run and, where releases are signed, the key; each by its name.
func checkSecrets(workflow string, text []byte) []string {
	allowed := []string{"GITHUB_TOKEN"}
	if path.Base(workflow) == "release.yaml" {
		allowed = append(allowed, "COSIGN_PRIVATE_KEY", "COSIGN_PASSWORD")
	}
	var violations []string
	for _, found := range expression.FindAll(text, -1) {
		for _, match := range secretName.FindAllSubmatch(found, -1) {
			if name := string(match[1]); name == "" {
				violations = append(violations, "uses secrets without a name: "+string(found))
			} else if !slices.Contains(allowed, name) {
				violations = append(violations, "uses the secret "+name)
			}
		}
	}
	return violations
}

// checkUses requires actions of other repositories to be pinned.
func checkUses(text []byte) []string {
	var violations []string
	for _, match := range usesLine.FindAllSubmatch(text, -1) {
		if used := string(match[1]); !strings.HasPrefix(used, "./") && !pinnedAction.MatchString(used) {
			violations = append(violations, used+" is not pinned by a commit, with its version as a comment")
		}
	}
	return violations
}

// checkPermissions requires a workflow to give all jobs no permission but to read the contents, and to limit concurrent runs.
func checkPermissions(w workflow) []string {
	var violations []string
	if w.Permissions == nil {
		violations = append(violations, "does not set permissions")
	} else {
		for _, scope := range slices.Sorted(maps.Keys(*w.Permissions)) {
			if access := (*w.Permissions)[scope]; scope != "contents" || access != "read" {
				violations = append(violations, fmt.Sprintf("gives %s to %s to all jobs", access, scope))
			}
		}
	}
	if w.Concurrency == nil {
		violations = append(violations, "has no concurrency")
		return violations
	}
	group, _ := (*w.Concurrency)["group"].(string)
	switch publishes := w.publishesPages(); {
	case publishes && (strings.Contains(group, "${{") || (*w.Concurrency)["cancel-in-progress"] != true):
		violations = append(violations, "can replace newer pages by older ones: a new run does not cancel the others")
	case !publishes && w.runsOnBranches() && !strings.Contains(group, "github.run_id"):
		violations = append(violations, "cancels waiting runs of a branch: the group has no github.run_id")
	}
	return violations
}

// publishesPages reports whether a job of a workflow publishes on GitHub Pages. Only the newest run matters then.
func (w workflow) publishesPages() bool {
	for _, each := range w.Jobs {
		if each.Permissions != nil && (*each.Permissions)["pages"] == "write" {
			return true
		}
	}
	return false
}

// isStartedBy reports whether an event starts a workflow.
func (w workflow) isStartedBy(event string) bool {
	switch events := w.On.(type) {
	case string:
		return events == event
	case []any:
		return slices.Contains(events, any(event))
	case map[string]any:
		_, found := events[event]
		return found
	}
	return false
}

// runsOnBranches reports whether pushes to branches start a workflow.
func (w workflow) runsOnBranches() bool {
	events, _ := w.On.(map[string]any)
	push, _ := events["push"].(map[string]any)
	return push["branches"] != nil
}

// checkWriting lets a job that may write packages, contents or pages run nothing of the repository but what publishes, whose tools are
// built without a secret; and one that has an identity or may attest, nothing at all.
func checkWriting(name string, j job) []string {
	var violations []string
	writes := func(scope string) bool { return (*j.Permissions)[scope] == "write" }
	if j.Permissions == nil {
		return nil
	}
	identity := slices.ContainsFunc([]string{"id-token", "attestations"}, writes)
	if !identity && !slices.ContainsFunc([]string{"contents", "packages", "pages"}, writes) {
		return nil
	}
	for _, step := range j.Steps {
		switch own := ownCode.FindAllString(step.Run, -1); {
		case identity && (len(own) > 0 || strings.HasPrefix(step.Uses, "./")):
			violations = append(violations, fmt.Sprintf("job %s runs code of the repository with an identity", name))
		case len(own) == 0:
		case len(own) == 1 && strings.HasPrefix(step.Run, "hack/publish-release.sh "):
		case len(own) == 1 && strings.HasPrefix(step.Run, "hack/build-release-tools.sh ") && len(step.Env) == 0:
		default:
			violations = append(violations, fmt.Sprintf("job %s builds with the right to write", name))
		}
	}
	return violations
}

// checkTargets requires that the targets of make in the steps of a job exist.
func checkTargets(j job, targets map[string]bool) []string {
	var violations []string
	for _, step := range j.Steps {
		for _, match := range makeCommand.FindAllStringSubmatch(step.Run, -1) {
			named := slices.DeleteFunc(strings.Fields(match[1]), func(word string) bool {
				return strings.HasPrefix(word, "-") || strings.Contains(word, "=")
			})
			if len(named) == 0 {
				violations = append(violations, "make without a target")
			}
			for _, target := range named {
				if !targets[target] {
					violations = append(violations, "the Makefile has no target "+target)
				}
			}
		}
	}
	return violations
}

// phony returns the targets of the Makefile.
func phony(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, match := range phonyTargets.FindAllSubmatch(read(t, tree, "Makefile"), -1) {
		for _, target := range strings.Fields(string(match[1])) {
			targets[target] = true
		}
	}
	return targets
}

// workflowFiles returns the workflows of the repository and its own actions.
func workflowFiles(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{".github/workflows/*", ".github/actions/*/action.yaml"} {
		found, err := fs.Glob(tree, pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// folders returns the folders that have a file, as paths from the root, sorted.
func folders(t *testing.T, tree fs.FS, file string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != "." && (base == "testdata" || base == "node_modules" || base == "bin" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		if base == file {
			found = append(found, path.Join("/", path.Dir(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(found))
}

func read(t *testing.T, tree fs.FS, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(tree, name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func unmarshal(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
