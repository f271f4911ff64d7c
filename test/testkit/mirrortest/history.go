// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"strings"
)

// Commit is a commit of the server.
type Commit struct {
	Author, Email string
	Subject       string
	// Signal is the attribution signal that reported the author. This field and the following ones are trailers of the
	// commit.
	Signal             string
	ResourceVersion    string
	ImpersonatedBy     string
	NamespaceDeletedBy string
}

// String returns a short description of the commit.
func (c Commit) String() string {
	return fmt.Sprintf("%s by %q (%s, resourceVersion %s)", c.Subject, c.Author, c.Signal, c.ResourceVersion)
}

// History returns the commits of the branch that git log prints with the arguments, oldest first: those about a change
// of one object of a resource, such as "v1/configmaps", or all if the resource is empty.
func (m *Mirror) History(ctx context.Context, resource string, arguments ...string) ([]Commit, error) {
	fields := []string{"%an", "%ae", "%s"}
	for _, trailer := range []string{"Attribution", "ResourceVersion", "ImpersonatedBy", "NamespaceDeletedBy"} {
		fields = append(fields, "%(trailers:key=X-ConfigButler-"+trailer+",valueonly,separator=%x2C)")
	}
	out, err := m.Git(ctx, append([]string{"log", "--reverse", "--format=" + strings.Join(fields, "%x00"), m.Branch}, arguments...)...)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if resource == "" || strings.Contains(f[2], "] "+resource+" ") {
			commits = append(commits, Commit{
				Author: f[0], Email: f[1], Subject: f[2], Signal: f[3], ResourceVersion: f[4], ImpersonatedBy: f[5], NamespaceDeletedBy: f[6],
			})
		}
	}
	return commits, nil
}
