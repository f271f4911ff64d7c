// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/url"
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
	// linkLimit is longer than the plugin takes to print a link unless it hangs.
	linkLimit = time.Minute
	// columns is more than the length of any line that the plugin prints.
	columns, rows = 400, 40
)

// link matches the link that the plugin prints: the address and the code.
var link = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/#([^\s\x1b]+)`)

// dashboard is a running kubectl slipstream dashboard on a terminal.
type dashboard struct {
	// owner is the test with which it ends. It may be restarted in a subtest.
	owner     *testing.T
	user      devcluster.Kubeconfig
	arguments []string
	// address is the address of the page, such as http://127.0.0.1:4711.
	address string
	screen  *os.File
	// links are the links that it prints.
	links chan string
	stop  func()
	// process is the plugin.
	process *os.Process
}

// startDashboard starts the plugin as a user, with more arguments, until the test ends.
func startDashboard(t *testing.T, user devcluster.Kubeconfig, arguments ...string) *dashboard {
	t.Helper()
	d := &dashboard{owner: t, user: user, arguments: arguments}
	d.start(t)
	t.Cleanup(func() { d.stop() })
	return d
}

// start starts the plugin, and waits for the first link.
func (d *dashboard) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	screen, terminal := testkit.OpenTerminal(d.owner, columns, rows)
	command := clustertest.Plugin(t, d.user).Command(ctx, append([]string{"dashboard", "--no-open"}, d.arguments...)...)
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
	d.address, _, _ = strings.Cut(first, "/#")
	d.links <- first
}

// read reads what is printed until the plugin ends, and returns it.
func (d *dashboard) read() string {
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
func (d *dashboard) nextLink(t *testing.T, printed <-chan string) string {
	t.Helper()
	select {
	case found := <-d.links:
		return found
	case text := <-printed:
		t.Fatalf("the plugin has ended without a link:\n%s", text)
	case <-time.After(linkLimit):
		t.Fatalf("the plugin has printed no link within %s", linkLimit)
	}
	return ""
}

// link returns a link with a code that has not been used: the user presses Enter. Codes that nobody has used may be too old.
func (d *dashboard) link(t *testing.T) string {
	t.Helper()
	for len(d.links) > 0 {
		<-d.links
	}
	if _, err := d.screen.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	return d.nextLink(t, nil)
}

// code returns a code that has not been used.
func (d *dashboard) code(t *testing.T) string {
	t.Helper()
	_, code, _ := strings.Cut(d.link(t), "/#")
	return code
}

// pause stops the process of the plugin, or continues it.
func (d *dashboard) pause(paused bool) error {
	if paused {
		return d.process.Signal(syscall.SIGSTOP)
	}
	return d.process.Signal(syscall.SIGCONT)
}

// restart ends the plugin and starts it again on the same port.
func (d *dashboard) restart(t *testing.T) {
	t.Helper()
	d.stop()
	address, err := url.Parse(d.address)
	if err != nil {
		t.Fatal(err)
	}
	before := d.arguments
	d.arguments = append(d.arguments[:len(d.arguments):len(d.arguments)], "--port="+address.Port())
	d.start(t)
	d.arguments = before
}
