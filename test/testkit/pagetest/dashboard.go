// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pagetest

import (
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// columns is more than the length of any line that the plugin prints.
	columns, rows = 400, 40
)

// link matches the link that the plugin prints: the address and the code.
var link = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#([^\s\x1b]+)`)

// Dashboard is a running kubectl slipstream dashboard on a terminal.
type Dashboard struct {
	// owner is the test with which it ends. It may be restarted in a subtest.
	owner testing.TB
	// User is the kubeconfig of the user.
	User      devcluster.Kubeconfig
	arguments []string
	// Address is the address of the page, such as http://127.0.0.1:4711.
	Address string
	screen  *os.File
	// links are the links that it prints.
	links chan string
	stop  func()
	// process is the plugin.
	process *os.Process
}

// StartDashboard starts the plugin as a user, with more arguments, until the test ends.
func StartDashboard(t testing.TB, user devcluster.Kubeconfig, arguments ...string) *Dashboard {
	t.Helper()
	_, port, _ := strings.Cut(testkit.FreeAddress(t), ":")
	d := &Dashboard{owner: t, User: user, arguments: append([]string{"dashboard", "--no-open", "--port=" + port}, arguments...)}
	d.start(t)
	t.Cleanup(func() { d.stop() })
	return d
}

// start starts the plugin, and waits for the first link.
func (d *Dashboard) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	screen, terminal := testkit.OpenTerminal(d.owner, columns, rows)
	command := clustertest.Plugin(t, d.User).Command(ctx, d.arguments...)
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close() // The command has its own.
	d.process = command.Process
	printed := make(chan string, 1)
	d.screen, d.links = screen, make(chan string, 100)
	go func() { printed <- d.read() }()
	d.stop = func() {
		cancel()
		_ = command.Wait() // It was killed.
	}
	first := d.nextLink(t, printed)
	d.Address, _, _ = strings.Cut(first, "/#")
	d.links <- first
}

// read reads what is printed until the plugin ends, and returns it.
func (d *Dashboard) read() string {
	var all strings.Builder
	buffer := make([]byte, 4096)
	sent := 0
	for {
		n, err := d.screen.Read(buffer)
		all.Write(buffer[:n])
		// A link is complete when its line is.
		lines := all.String()[:strings.LastIndexByte(all.String(), '\n')+1]
		found := link.FindAllString(lines, -1)
		for ; sent < len(found); sent++ {
			d.links <- found[sent]
		}
		if err != nil {
			return all.String()
		}
	}
}

// nextLink waits for a link.
func (d *Dashboard) nextLink(t testing.TB, printed <-chan string) string {
	t.Helper()
	select {
	case found := <-d.links:
		return found
	case text := <-printed:
		t.Fatalf("the plugin has ended without a link:\n%s", text)
	case <-time.After(testkit.Timeout):
		t.Fatalf("the plugin has printed no link within %s", testkit.Timeout)
	}
	return ""
}

// Link returns a link with a code that has not been used: the user presses Enter. Codes that nobody has used may be too old.
func (d *Dashboard) Link(t testing.TB) string {
	t.Helper()
	for len(d.links) > 0 {
		<-d.links
	}
	if _, err := d.screen.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	return d.nextLink(t, nil)
}

// Code returns a code that has not been used.
func (d *Dashboard) Code(t testing.TB) string {
	t.Helper()
	_, code, _ := strings.Cut(d.Link(t), "/#")
	return code
}

// Pause stops the process of the plugin, or continues it.
func (d *Dashboard) Pause(paused bool) error {
	if paused {
		return d.process.Signal(syscall.SIGSTOP)
	}
	return d.process.Signal(syscall.SIGCONT)
}

// Restart ends the plugin and starts it again on the same port.
func (d *Dashboard) Restart(t testing.TB) {
	t.Helper()
	d.stop()
	d.start(t)
}
