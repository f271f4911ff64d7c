// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pagetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
)

// scenarioLimit is longer than any scenario takes on a busy machine.
const scenarioLimit = 2 * testkit.Timeout

// Browser runs scenarios in Chromium, which a Node process controls. That process and the test exchange lines of JSON: the test names a
// scenario, and the scenario asks the test for what only the test can do, such as a command of kubectl, until it ends.
type Browser struct {
	// file is the module that exports the scenarios.
	folder, file, chromium, node string
	// artifacts is the folder of the screenshots of scenarios that failed.
	artifacts string
	// running is nil before the first scenario, and after one that was cut off.
	running *nodeProcess
}

// nodeProcess is the Node process.
type nodeProcess struct {
	input io.WriteCloser
	lines *bufio.Scanner
	stop  func()
}

// message is a line from the Node process.
type message struct {
	// Scenarios are the names of all scenarios.
	Scenarios []string `json:"scenarios"`
	// Do is a step that the scenario asks for, with its arguments.
	Do   string          `json:"do"`
	Args json.RawMessage `json:"args"`
	// Log is a line for the log of the test.
	Log string `json:"log"`
	// Done is set when the scenario has ended. Error is why it failed, Screenshot the file of the last screen.
	Done       bool   `json:"done"`
	Error      string `json:"error"`
	Screenshot string `json:"screenshot"`
}

// reply is the answer to a step.
type reply struct {
	Result any    `json:"result"`
	Error  string `json:"error,omitempty"`
}

// Step does what a scenario asks for, and returns the result. The arguments are JSON.
type Step func(name string, arguments json.RawMessage) (any, error)

// NewBrowser checks and installs what the scenarios of a file of test/page/browser need, before a cluster is started in vain.
func NewBrowser(t testing.TB, file string) *Browser {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "test", "page", "browser")
	b := &Browser{
		folder:   folder,
		file:     filepath.Join(folder, file),
		chromium: program(t, "chromium", "the tests of the page need Chromium, which the package chromium of Debian installs"),
		node:     program(t, "node", "the tests of the page need Node.js 20 or later"),
	}
	npmInstall(t, folder)
	if b.artifacts, err = os.MkdirTemp("", "slipstream-page-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b.running != nil {
			b.running.stop()
		}
		if !t.Failed() {
			_ = os.RemoveAll(b.artifacts) // It is a temporary folder.
		}
	})
	return b
}

// program returns the path of a program, or fails with a sentence.
func program(t testing.TB, name, sentence string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not in PATH: %s", name, sentence)
	}
	return path
}

// npmInstall installs the packages of the scenarios, unless they are there, as package-lock.json has them.
func npmInstall(t testing.TB, folder string) {
	t.Helper()
	wanted, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(folder, "node_modules", ".slipstream-lock.json")
	if installed, err := os.ReadFile(marker); err == nil && string(installed) == string(wanted) {
		return
	}
	npm := program(t, "npm", "the tests of the page need npm: install Node.js 20 or later")
	if out, err := runIn(t, folder, npm, "ci"); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(marker, wanted, 0o600); err != nil {
		t.Fatal(err)
	}
}

// runIn runs a program in a folder, and returns its output.
func runIn(t testing.TB, folder, path string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), path, arguments...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	return string(out), err
}

// process returns the Node process, which is started if it does not run. It outlives the scenario.
func (b *Browser) process(t testing.TB) *nodeProcess {
	t.Helper()
	if b.running != nil {
		return b.running
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, b.node, filepath.Join(b.folder, "main.mjs"), b.file)
	command.Env = append(os.Environ(), "CHROMIUM="+b.chromium, "ARTIFACTS="+b.artifacts)
	command.Stderr = os.Stderr
	// Chromium ends with the process that controls it, so that must have the time to end it.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 16<<20)
	b.running = &nodeProcess{input: input, lines: lines, stop: sync.OnceFunc(func() {
		_ = input.Close() // It ends then.
		cancel()
		_ = command.Wait() // It was interrupted.
	})}
	return b.running
}

// Scenarios returns the names of all scenarios, in order.
func (b *Browser) Scenarios(t testing.TB) []string {
	t.Helper()
	process := b.process(t)
	if err := process.send(map[string]any{"list": true}); err != nil {
		t.Fatal(err)
	}
	answer, err := process.next()
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Scenarios) == 0 {
		t.Fatal("there are no scenarios")
	}
	return answer.Scenarios
}

// Run runs a scenario.
func (b *Browser) Run(t testing.TB, scenario string, step Step) {
	t.Helper()
	process, ended := b.process(t), false
	defer func() {
		if !ended { // A step has failed the test, and the scenario still waits for it.
			process.stop()
			b.running = nil
		}
	}()
	watchdog := time.AfterFunc(scenarioLimit, process.stop)
	defer watchdog.Stop()
	if err := process.send(map[string]any{"scenario": scenario}); err != nil {
		t.Fatal(err)
	}
	for {
		got, err := process.next()
		switch {
		case err != nil:
			t.Fatal(err)
		case got.Log != "":
			t.Log(got.Log)
		case got.Done:
			ended = true
			if got.Error != "" {
				t.Errorf("%s\nscreenshot: %s", got.Error, got.Screenshot)
			}
			return
		default:
			var answer reply
			if answer.Result, err = step(got.Do, got.Args); err != nil {
				answer.Error = err.Error()
			}
			if err := process.send(answer); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (p *nodeProcess) send(value any) error {
	line, err := json.Marshal(value)
	if err == nil {
		_, err = p.input.Write(append(line, '\n'))
	}
	return err
}

func (p *nodeProcess) next() (got message, err error) {
	if !p.lines.Scan() {
		return got, errors.Join(errors.New("the Node process has ended; its error is above"), p.lines.Err())
	}
	if err := json.Unmarshal(p.lines.Bytes(), &got); err != nil {
		return got, fmt.Errorf("the Node process wrote %q: %w", p.lines.Text(), err)
	}
	return got, nil
}
