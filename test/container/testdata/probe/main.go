// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe prints what a program in a container can see and do.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(answer()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 1 {
		<-time.After(time.Hour) // It is killed earlier. Without a timer, the runtime ends a program whose goroutines all wait.
	}
}

func answer() map[string]string {
	answers := map[string]string{
		"pid": fmt.Sprint(os.Getpid()), "environment": strings.Join(os.Environ(), " "),
		"files": names("/"), "read-only volume": read("/config/file"),
	}
	for _, path := range []string{"/new", "/data/new", "/config/new", "/dev/null"} {
		answers["write "+path] = write(path)
	}
	for line := range strings.Lines(read("/proc/self/status")) {
		if name, value, _ := strings.Cut(line, ":"); strings.Contains("Uid Gid Groups CapEff CapPrm CapInh CapBnd CapAmb NoNewPrivs", name) {
			answers[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return answers
}

func names(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func write(path string) string {
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return err.Error()
	}
	return "done"
}
