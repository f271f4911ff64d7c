// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// place is a folder on a branch of a repository, which is identified by the hash of its canonical URL: users who may read a destination
// need not be allowed to read the URL.
type place struct{ repository, branch, folder string }

// place returns the place that a destination names; zero if it cannot be used.
func (p *destinationPlan) place() place {
	if p.branch == (branchKey{}) {
		return place{}
	}
	sum := sha256.Sum256([]byte(canonicalURL(p.branch.url)))
	return place{repository: hex.EncodeToString(sum[:10]), branch: p.object.Spec.Branch, folder: p.object.Spec.BaseFolder}
}

func placeOf(claim *v1alpha1.FolderClaim) place {
	return place{repository: claim.Repository, branch: claim.Branch, folder: claim.Folder}
}

// newClaim returns the claim of a destination that began to name its place at a time.
func (p *destinationPlan) newClaim(since metav1.Time) v1alpha1.FolderClaim {
	at := p.place()
	return v1alpha1.FolderClaim{
		Repository: at.repository, Branch: at.branch, Folder: at.folder, Since: since, State: v1alpha1.ClaimNamed,
	}
}

// claimOf returns the current claim of a destination; nil if it has none. The status of the object may be older.
func (in *inputs) claimOf(d *v1alpha1.GitDestination) *v1alpha1.FolderClaim {
	if claim, ok := in.claims[d.UID]; ok {
		return claim
	}
	return d.Status.Claim
}

// settleClaims sets the claims of all destinations. A destination that names another place than before is last: it must not exclude one
// that is mirrored there. A destination without a claim is new and counts from its creation.
func (p *plan) settleClaims(in inputs) {
	next := metav1.NewTime(in.now.Truncate(time.Second))
	var moved []*destinationPlan
	for _, d := range p.destinations {
		before := in.claimOf(d.object)
		switch {
		case before == nil:
			d.claim = d.newClaim(d.object.CreationTimestamp)
		case d.problem.IsZero() && placeOf(before) != d.place():
			d.claim = *before
			moved = append(moved, d)
			continue
		default:
			d.claim = d.keepClaim(*before)
		}
		// Clocks of servers differ.
		if !d.claim.Since.Before(&next) {
			next = metav1.NewTime(d.claim.Since.Add(time.Second))
		}
	}
	slices.SortFunc(moved, compareClaims) // A new URL of their repository does not change their order.
	for _, d := range moved {
		d.claim = d.newClaim(next)
		next = metav1.NewTime(next.Add(time.Second))
	}
}

// keepClaim returns the claim of a destination that names the same place as before. While a problem or a suspension keeps it from being
// mirrored, others may precede it. A suspended destination keeps the folder that it has written.
func (p *destinationPlan) keepClaim(claim v1alpha1.FolderClaim) v1alpha1.FolderClaim {
	if !p.problem.IsZero() || p.object.Spec.Suspend && claim.State != v1alpha1.ClaimWritten {
		claim.State = v1alpha1.ClaimNamed
	}
	return claim
}

// claimStates are the states of claims in the order of their precedence.
var claimStates = []v1alpha1.ClaimState{v1alpha1.ClaimWritten, v1alpha1.ClaimReached, v1alpha1.ClaimNamed}

// compareClaims sorts destinations by the precedence of their claims.
func compareClaims(a, b *destinationPlan) int {
	return cmp.Or(
		cmp.Compare(slices.Index(claimStates, a.claim.State), slices.Index(claimStates, b.claim.State)),
		a.claim.Since.Compare(b.claim.Since.Time),
		a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time),
		compareNames(nameOf(a.object), nameOf(b.object)))
}

// refuseOverlaps rejects all but one of the destinations whose folders overlap on a branch: see compareClaims.
func (p *plan) refuseOverlaps() {
	ordered := make([]*destinationPlan, 0, len(p.destinations))
	for _, d := range p.destinations {
		if d.problem.IsZero() {
			ordered = append(ordered, d)
		}
	}
	slices.SortFunc(ordered, compareClaims)
	ordered = p.refuseProposalBranches(ordered)
	taken := map[place][]*destinationPlan{} // by repository and branch
	for _, d := range ordered {
		at := place{repository: d.claim.Repository, branch: d.claim.Branch}
		i := slices.IndexFunc(taken[at], func(other *destinationPlan) bool { return other.excludes(d) })
		if i < 0 {
			taken[at] = append(taken[at], d)
			continue
		}
		other := taken[at][i].object
		d.problem = conditions.Reason{Code: v1alpha1.ReasonFolderOverlaps, Message: fmt.Sprintf(
			"folder %q lies inside or around folder %q of GitDestination %s on the same branch", d.object.Spec.BaseFolder, other.Spec.BaseFolder,
			nameOf(other))}
	}
}

// refuseProposalBranches rejects the destinations that write a branch which another one with a better claim writes, if either proposes its
// changes, and returns the others: the branch of a pull request has one writer. Others have other credentials for the same branch, and must
// not exclude each other by its name.
func (p *plan) refuseProposalBranches(ordered []*destinationPlan) []*destinationPlan {
	type branch struct {
		repository types.NamespacedName
		name       string
	}
	writers := map[branch]*destinationPlan{}
	return slices.DeleteFunc(ordered, func(d *destinationPlan) bool {
		at := branch{d.branch.repository, d.branch.branch}
		other, taken := writers[at]
		if !taken {
			writers[at] = d
			return false
		}
		if d.branch.base == "" && other.branch.base == "" {
			return false
		}
		d.problem = conditions.Reason{Code: v1alpha1.ReasonBranchNotAllowed, Message: fmt.Sprintf(
			"GitDestination %s writes branch %q, and the branch of a pull request has one writer", nameOf(other.object), d.branch.branch)}
		return true
	})
}

// excludes reports whether a destination prevents another one on its branch, whose claim comes later, from being mirrored. Before it has
// reached the repository, it excludes only those that use the same credentials.
func (p *destinationPlan) excludes(other *destinationPlan) bool {
	if !manifest.FoldersOverlap(p.object.Spec.BaseFolder, other.object.Spec.BaseFolder) {
		return false
	}
	switch {
	case p.claim.State == v1alpha1.ClaimWritten:
		return true
	case p.object.Spec.Suspend:
		return false
	case p.claim.State == v1alpha1.ClaimReached:
		return true
	}
	return p.branch.repository == other.branch.repository
}

// claims returns the current claims by the UID of their destination.
func (r *registry) claims() map[types.UID]*v1alpha1.FolderClaim {
	r.mu.Lock()
	defer r.mu.Unlock()
	claims := map[types.UID]*v1alpha1.FolderClaim{}
	for _, d := range r.destinations {
		claims[d.uid] = d.claim.Load()
	}
	return claims
}

// claimed records what the worker of a branch has found about a member's folder, and requests a new plan if that changes a claim. If the
// marker names another destination whose spec names that folder, the other one has written it.
func (r *registry) claimed(m member, o ownership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := m.plan.place()
	changed := m.destination.setClaim(at, o.claimState(at.folder))
	if holder, ok := r.destinations[o.holder]; ok {
		at.folder = o.held
		changed = holder.setClaim(at, v1alpha1.ClaimWritten) || changed
	}
	if changed {
		signal(r.replan)
		signal(r.publish)
	}
}

// claimState returns the state of the claim to a folder by its ownership.
func (o ownership) claimState(folder string) v1alpha1.ClaimState {
	switch {
	case o.holder != (types.NamespacedName{}) && o.held == folder:
		return v1alpha1.ClaimNamed
	case o.own:
		return v1alpha1.ClaimWritten
	}
	return v1alpha1.ClaimReached
}

// setClaim sets the state of the claim to a place, and reports whether that changes it. The caller holds the registry's mu.
func (d *destination) setClaim(at place, state v1alpha1.ClaimState) (changed bool) {
	claim := d.claim.Load()
	if claim == nil || placeOf(claim) != at || claim.State == state {
		return false
	}
	next := *claim
	next.State = state
	d.claim.Store(&next)
	return true
}

// names reports whether the spec of a destination names a folder of a branch with that name. It counts while it is not mirrored: its
// files are its own until it names another folder or is deleted.
func (r *registry) names(name types.NamespacedName, branch, folder string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.destinations[name]
	if !ok {
		return false
	}
	spec := d.plan.Load().object.Spec
	return spec.Branch == branch && spec.BaseFolder == folder
}
