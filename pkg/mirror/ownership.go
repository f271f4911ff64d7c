// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// ownership is the state of ownership of a destination's folder.
type ownership struct {
	// owner is the content of the marker; nil if there is none, or it cannot be read.
	owner *v1alpha1.OwnerMarker
	// conflict describes another owner of the folder; empty if there is none.
	conflict string
	// refused is set if the destination must not write the folder.
	refused error
	// vacant is set if the marker can be written.
	vacant bool
	// own is set if the marker names the destination itself.
	own bool
	// holder is another destination of this installation that a marker names and whose spec names the marker's folder, held.
	holder types.NamespacedName
	held   string
}

// foundMarker is a marker as it was read.
type foundMarker struct {
	owner v1alpha1.OwnerMarker
	err   error
}

// markers has the markers of the folders of a branch.
type markers struct {
	identity Identity
	// names reports whether the spec of the destination with the name names a folder of a branch.
	names func(name types.NamespacedName, branch, folder string) bool
	// byBlob has the markers that were read, by blob.
	byBlob map[gitrepo.Hash]foundMarker
	// nested has the paths of the markers of folders within each destination's.
	nested map[*destination][]string
}

func newMarkers(services *branchServices) *markers {
	return &markers{identity: services.identity, names: services.names, nested: map[*destination][]string{}}
}

func countConflict(o ownership) {
	if o.conflict != "" {
		markerConflicts.Inc()
	}
	if o.refused != nil {
		ownershipConflicts.Inc()
	}
}

// mostNested bounds how many markers within one folder are read.
const mostNested = 100

// findNested finds the markers of folders within a destination's.
func (k *markers) findNested(ctx context.Context, tree *gitrepo.Tree, m member) error {
	var paths []string
	err := tree.Walk(m.plan.object.Spec.BaseFolder, func(file string, _ gitrepo.Hash) error {
		if strings.HasSuffix(file, "/"+markerPath) && file != m.plan.file(markerPath) && len(paths) < mostNested {
			paths = append(paths, file)
		}
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("find markers: %w", err)
	}
	k.nested[m.destination] = paths
	return nil
}

// retain drops the nested markers of all destinations but those given.
func (k *markers) retain(destinations []*destination) {
	maps.DeleteFunc(k.nested, func(d *destination, _ []string) bool { return !slices.Contains(destinations, d) })
}

// treesOf returns the files of a branch, and those of its base if it has one.
func treesOf(branch *gitrepo.Branch) []*gitrepo.Tree {
	trees := []*gitrepo.Tree{branch.Snapshot()}
	if !branch.BaseTip().IsZero() {
		trees = append(trees, branch.BaseTree())
	}
	return trees
}

// read reads the markers of the members' folders, and within them, that have not been read before.
func (k *markers) read(ctx context.Context, branch *gitrepo.Branch, members []member) error {
	var unread []gitrepo.Hash
	known := map[gitrepo.Hash]foundMarker{}
	find := func(tree *gitrepo.Tree, path string) {
		hash, exists := tree.Lookup(path)
		marker, ok := k.byBlob[hash]
		switch {
		case exists && ok:
			known[hash] = marker
		case exists && !slices.Contains(unread, hash):
			unread = append(unread, hash)
		}
	}
	trees := treesOf(branch)
	for _, m := range members {
		for _, path := range append([]string{m.plan.file(markerPath)}, k.nested[m.destination]...) {
			for _, tree := range trees {
				find(tree, path)
			}
		}
	}
	k.byBlob = known
	if len(unread) == 0 {
		return nil
	}
	contents, err := branch.Contents(ctx, unread...)
	if err != nil {
		return fmt.Errorf("read the markers: %w", err)
	}
	for _, hash := range unread {
		k.byBlob[hash] = readMarker(contents, hash)
	}
	return nil
}

func readMarker(contents map[gitrepo.Hash][]byte, hash gitrepo.Hash) foundMarker {
	content, ok := contents[hash]
	if !ok {
		return foundMarker{err: fmt.Errorf("it is larger than %d bytes, or the server does not give it", gitrepo.MaxContent)}
	}
	owner, err := parseMarker(content)
	return foundMarker{owner: owner, err: err}
}

// ownership returns the ownership of a member's folder, staged commits included. Another owner of a nested folder is a
// conflict although neither removes the other's files, because it is not intended.
func (k *markers) ownership(tree *gitrepo.Tree, m member) ownership {
	o := k.ownFolder(tree, m)
	if o.conflict != "" {
		return o
	}
	for _, path := range k.nested[m.destination] {
		conflict, holder := k.claimWithin(tree, m, path)
		if conflict == "" {
			continue
		}
		contested := m.contested(o.owner, conflict)
		contested.vacant, contested.own = o.vacant, o.own
		contested.holder, contested.held = holder, markedFolder(path)
		return contested
	}
	return o
}

// ownFolder returns the ownership by the folder's own marker. The marker of a destination of this installation that was
// deleted, or that now names another folder, is ignored. If that destination still names the folder, it is a conflict in any
// mode, whether or not it is mirrored at present: each would remove the other's files. A file on the folder's path is never
// replaced.
func (k *markers) ownFolder(tree *gitrepo.Tree, m member) ownership {
	if file := tree.Obstacle(m.plan.object.Spec.BaseFolder); file != "" {
		return ownership{refused: refused(v1alpha1.ReasonFolderInvalid,
			"spec.baseFolder: %q is not a folder on the branch; choose another folder, or remove what has that name", file)}
	}
	path := m.plan.file(markerPath)
	hash, exists := tree.Lookup(path)
	if !exists {
		return ownership{vacant: true}
	}
	marker := k.byBlob[hash]
	if marker.err != nil {
		return m.contested(nil, fmt.Sprintf("the marker %s cannot be understood: %v", path, marker.err))
	}
	owner := &marker.owner
	if elsewhere := k.elsewhere(owner); elsewhere != "" {
		return m.contested(owner, fmt.Sprintf("the marker %s names GitDestination %s", path, elsewhere))
	}
	name := ownerName(owner)
	switch {
	case name == m.destination.key:
		return ownership{owner: owner, own: true}
	case !k.names(name, m.plan.object.Spec.Branch, markedFolder(path)):
		return ownership{owner: owner, vacant: true}
	}
	conflict := fmt.Sprintf("the marker %s names GitDestination %s, whose spec names the same branch and folder; choose another folder, "+
		"or, if that GitDestination is for another repository, delete the marker", path, name)
	return ownership{
		owner: owner, conflict: conflict, refused: refused(v1alpha1.ReasonFolderOverlaps, "%s", conflict), holder: name, held: markedFolder(path),
	}
}

// markedFolder returns the folder of a marker.
func markedFolder(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, markerPath), "/")
}

// claimWithin describes the owner of a folder within a member's, by its marker; empty if there is none any more. holder is the owner if
// it is of this installation.
func (k *markers) claimWithin(tree *gitrepo.Tree, m member, path string) (conflict string, holder types.NamespacedName) {
	hash, exists := tree.Lookup(path)
	marker, read := k.byBlob[hash]
	if !exists || !read || marker.err != nil {
		return "", holder
	}
	name := ownerName(&marker.owner)
	if elsewhere := k.elsewhere(&marker.owner); elsewhere != "" {
		return fmt.Sprintf("the marker %s, within the folder, names GitDestination %s", path, elsewhere), holder
	}
	if name == m.destination.key || !k.names(name, m.plan.object.Spec.Branch, markedFolder(path)) {
		return "", holder
	}
	return fmt.Sprintf("the marker %s, within the folder, names GitDestination %s, whose spec names that folder", path, name), name
}

// elsewhere describes the owner of a marker that is of another cluster or installation; empty if it is of this one.
func (k *markers) elsewhere(owner *v1alpha1.OwnerMarker) string {
	switch {
	case owner.ClusterUID != k.identity.ClusterUID:
		return fmt.Sprintf("%s of the cluster %s", ownerName(owner), owner.ClusterUID)
	case owner.Instance != k.identity.Installation:
		return fmt.Sprintf("%s of another installation in this cluster, %s", ownerName(owner), owner.Instance)
	}
	return ""
}

func ownerName(owner *v1alpha1.OwnerMarker) types.NamespacedName {
	return types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}
}

// contested returns the ownership of a folder with another owner.
func (m member) contested(owner *v1alpha1.OwnerMarker, conflict string) ownership {
	o := ownership{owner: owner, conflict: conflict}
	if m.plan.object.Spec.ExclusiveMode {
		o.refused = refused(v1alpha1.ReasonOwnedByAnother,
			"%s; spec.exclusiveMode writes no folder of another owner. Delete the marker to take it over", conflict)
	}
	return o
}

// markerFor returns the marker to add to a commit, if the folder needs one.
func (k *markers) markerFor(tree *gitrepo.Tree, m member) (gitrepo.Change, bool, error) {
	if !k.ownership(tree, m).vacant {
		return gitrepo.Change{}, false, nil
	}
	id := k.identity
	owner := v1alpha1.OwnerMarker{
		ClusterUID: id.ClusterUID, Namespace: m.destination.key.Namespace, Name: m.destination.key.Name, Instance: id.Installation,
		Time: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
	}
	content, err := renderMarker(owner)
	if err != nil {
		return gitrepo.Change{}, false, err
	}
	byBlob := maps.Clone(k.byBlob)
	byBlob[gitrepo.BlobHash(content)] = foundMarker{owner: owner}
	k.byBlob = byBlob
	return gitrepo.Change{Path: m.plan.file(markerPath), Content: content}, true, nil
}
