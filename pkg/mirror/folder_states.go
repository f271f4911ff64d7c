// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"slices"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// folderStates has the state in which the worker left the folder of each destination.
type folderStates map[*destination]folderState

// folderState is the state of a destination's folder.
type folderState struct {
	folder string
	hash   gitrepo.Hash
}

func folderStateOf(tree *gitrepo.Tree, m member) folderState {
	folder := m.plan.object.Spec.BaseFolder
	hash, _ := tree.FolderHash(folder)
	return folderState{folder: folder, hash: hash}
}

// unchanged reports whether a member's folder is in the state in which the worker left it.
func (s folderStates) unchanged(tree *gitrepo.Tree, m member) bool {
	before, ok := s[m.destination]
	return ok && before == folderStateOf(tree, m)
}

// record records the state of the members' folders.
func (s folderStates) record(tree *gitrepo.Tree, members []member) {
	for _, m := range members {
		s[m.destination] = folderStateOf(tree, m)
	}
}

// retain drops all destinations but those given.
func (s folderStates) retain(destinations []*destination) {
	maps.DeleteFunc(s, func(d *destination, _ folderState) bool { return !slices.Contains(destinations, d) })
}
