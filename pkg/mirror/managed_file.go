// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"path"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// managedFile is a file with the layout of the mirror.
type managedFile struct {
	path   string
	object outbox.Object
}

// parseManaged parses a path below the base folder.
func parseManaged(below string) (managedFile, bool) {
	folder, ok := manifest.ManagedPath(below)
	return managedFile{path: below, object: outbox.Object{
		Group: folder.Group, Version: folder.Version, Resource: folder.Resource, Namespace: folder.Namespace,
		Name: strings.TrimSuffix(path.Base(below), ".yaml"),
	}}, ok
}

// walkFiles calls visit for the managed files of a tree in a folder below the base folder. It ends with ctx: a branch may have
// a million files.
func walkFiles(ctx context.Context, tree *gitrepo.Tree, p *destinationPlan, folder string, visit func(managedFile)) error {
	base := p.object.Spec.BaseFolder
	err := tree.Walk(p.file(folder), func(file string, _ gitrepo.Hash) error {
		if managed, ok := parseManaged(strings.TrimPrefix(strings.TrimPrefix(file, base), "/")); ok {
			visit(managed)
		}
		return ctx.Err()
	})
	return wrap("walk the files", err)
}
