// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
)

// remoteBranch is a branch as it was last read from its remote, with the credentials and the signing key of that time.
type remoteBranch struct {
	key          branchKey
	identity     Identity
	pollInterval time.Duration
	// connect returns the remote with its current credentials.
	connect func(context.Context, branchKey) (*gitrepo.Remote, error)
	// signer returns the signer of commits with the current key; nil if they are not signed.
	signer func(context.Context, *v1alpha1.GitRepoConfig) (signature.Signer, error)

	remote *gitrepo.Remote
	// branch is nil until it has been loaded, and after an error that requires it to be loaded again.
	branch *gitrepo.Branch
	// folders are the folders that branch was loaded with.
	folders []string
	// wording renders commits. It is constant, because a worker belongs to one generation of the configuration.
	wording *wording
	// sign is nil if the configuration requests no signatures.
	sign signature.Signer
	// since is the commit at which what is proposed begins, for a branch with a base.
	since gitrepo.Hash
	// stale is set if the remote may have moved since the branch was read.
	stale bool
	// pollAt is when the remote is polled without a trigger: other writers may have changed a folder, or the credentials may
	// have been revoked.
	pollAt time.Time
}

func newRemoteBranch(key branchKey, services *branchServices) *remoteBranch {
	return &remoteBranch{
		key: key, identity: services.identity, pollInterval: services.pollInterval, connect: services.remote, signer: services.signer,
	}
}

// read loads the branch if it has not been read with the folders of all members or if full is set. Otherwise it refreshes the
// branch if the remote may have moved or is due to be polled.
func (b *remoteBranch) read(ctx context.Context, members []member, full bool) error {
	switch {
	case b.branch == nil || full || !b.hasFolders(members):
		return b.load(ctx, members)
	case b.stale, !time.Now().Before(b.pollAt):
		return b.refresh(ctx, members)
	}
	return nil
}

// refresh updates the branch from the remote. When the remote is due to be polled it also reads the credentials and the
// signing key: if the credentials or the proxy have changed, the branch is loaded with the new ones, because the old ones may
// have been revoked.
func (b *remoteBranch) refresh(ctx context.Context, members []member) error {
	poll := !time.Now().Before(b.pollAt)
	if poll {
		remote, err := b.connect(ctx, b.key)
		if err != nil {
			return err
		}
		if b.sign, err = b.signer(ctx, members[0].plan.repository); err != nil {
			return err
		}
		if !remote.Credentials.Equal(b.remote.Credentials) || !remote.Proxy.Equal(b.remote.Proxy) {
			return b.load(ctx, members)
		}
	}
	if err := b.branch.Refresh(ctx); err != nil {
		return err
	}
	if poll {
		b.pollAt = time.Now().Add(b.pollInterval)
	}
	return nil
}

// hasFolders reports whether the branch was loaded with the folders of all members.
func (b *remoteBranch) hasFolders(members []member) bool {
	return !slices.ContainsFunc(members, func(m member) bool {
		return !slices.Contains(b.folders, m.plan.object.Spec.BaseFolder)
	})
}

// load connects to the remote and loads the branch with the folders of the members.
func (b *remoteBranch) load(ctx context.Context, members []member) error {
	remote, err := b.connect(ctx, b.key)
	if err != nil {
		return err
	}
	b.close()
	b.remote, b.branch = remote, nil
	b.wording = newWording(b.identity, members[0].plan.repository)
	if b.sign, err = b.signer(ctx, members[0].plan.repository); err != nil {
		return err
	}
	folders := make([]string, len(members))
	for i, m := range members {
		folders[i] = m.plan.object.Spec.BaseFolder
	}
	// Check comes first, because some servers create a repository for the first user who is allowed to write it.
	if err := remote.Check(ctx); err != nil {
		return err
	}
	b.pollAt = time.Now().Add(b.pollInterval)
	b.folders = folders
	b.branch, err = gitrepo.Load(ctx, remote, b.key.branch, gitrepo.Options{
		ManagedFolders: folders, Base: b.key.base, Since: b.since,
	})
	return err
}

// tree returns the files of the branch, staged commits included.
func (b *remoteBranch) tree() *gitrepo.Tree {
	return b.branch.Snapshot()
}

// invalidate invalidates the state of the branch after an error. The next read refreshes it with the current credentials,
// which also drops staged commits. If the remote rejected the credentials or the response was not valid, the branch is
// loaded again.
func (b *remoteBranch) invalidate(err error) {
	b.stale, b.pollAt = true, time.Time{}
	var git *gitrepo.Error
	if !errors.As(err, &git) {
		return
	}
	switch git.Kind {
	case gitrepo.Unauthorized, gitrepo.NotFound, gitrepo.Invalid, gitrepo.Protocol, gitrepo.TooLarge:
		b.branch = nil
	case gitrepo.Unreachable, gitrepo.Rejected:
	}
}

// close closes the remote.
func (b *remoteBranch) close() {
	if b.remote != nil {
		b.remote.Close()
	}
}
