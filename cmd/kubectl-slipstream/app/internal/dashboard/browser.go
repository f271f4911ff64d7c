// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// redirection is a file that leads a browser to a link.
const redirection = `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=%[1]s">
<title>Slipstream</title>
<a href="%[1]s">Open the page</a>
`

// openBrowser opens a link as the desktop does it. If that fails, the user opens the link that is printed. Other users of the machine can read
// the arguments of programs, and could use the code in the link first. So it is in a file that only this user can read, until the code is
// too old or remove is called.
func openBrowser(ctx context.Context, link string) (remove func()) {
	dir, err := os.MkdirTemp("", "slipstream-")
	if err != nil {
		return func() {}
	}
	clean := func() { _ = os.RemoveAll(dir) } // Its code opens nothing soon.
	timer := time.AfterFunc(codeLife, clean)
	path := filepath.Join(dir, "open.html")
	if os.WriteFile(path, fmt.Appendf(nil, redirection, link), 0o600) == nil {
		open(ctx, path)
	}
	return func() {
		timer.Stop()
		clean()
	}
}

// open opens a file with the program for its type.
func open(ctx context.Context, path string) {
	name, args := "xdg-open", []string{path}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", path}
	}
	command := exec.CommandContext(context.WithoutCancel(ctx), name, args...) //nolint:gosec // The path is ours, and no shell reads it.
	command.Stdout, command.Stderr = io.Discard, io.Discard
	if command.Start() == nil {
		go func() { _ = command.Wait() }() // Its exit code changes nothing.
	}
}
