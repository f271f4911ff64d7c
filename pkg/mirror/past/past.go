// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/boundedcache"
	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const (
	// timeout bounds a request: less than the aggregator's request timeout of 34 s.
	timeout = 25 * time.Second
	// retrySeconds is the Retry-After of a request that took too long.
	retrySeconds = 10
	// requestsAtOnce is how many requests read remotes at the same time, and requestsOfOwner how many of them for one namespace: that of
	// the destination, or of the Change. So a slow Git server does not keep others from theirs.
	requestsAtOnce  = 8
	requestsOfOwner = 3
	// maxCommits bounds the commits of all branches that are held in memory, of about 90 bytes each.
	maxCommits = 400_000
	// maxTrees bounds the directories of commits that are held in memory, in bytes.
	maxTrees = 64 << 20
	// maxCached bounds the contents that are read from the cache at a time, in bytes, but for the last one. As many are fetched beside them.
	maxCached = 32 << 20
)

// Contents cache the contents of blobs. Get returns false for a blob that is not cached. What it returns is verified.
type Contents interface {
	Get(hash gitrepo.Hash) ([]byte, bool)
	Put(hash gitrepo.Hash, content []byte)
}

// Config configures a Past. All fields are required unless their comment says otherwise.
type Config struct {
	// Client reads GitDestinations.
	Client versioned.Interface
	// Sources open the repositories of destinations.
	Sources *mirror.Sources
	// Cluster reads the Secrets with the server's private key and seed, in Namespace.
	Cluster   kubernetes.Interface
	Namespace string
	// Schemas compare objects.
	Schemas *diff.Schemas
	// Contents cache the contents of files. Optional.
	Contents Contents
	// Clock is for durations before now.
	Clock clock.PassiveClock
}

// Past reads states of objects in Git. It is safe for concurrent use.
type Past struct {
	config Config
	slots  *fairshare.Slots

	histories *boundedcache.Cache[branch, []gitrepo.PastCommit]
	trees     *boundedcache.Cache[folder, snapshot]
	gone      *gone
}

// branch identifies a branch through one version of a GitRepoConfig: a new one may name another repository.
type branch struct {
	repository string
	generation int64
	name       string
}

// folder is a folder in a commit of a branch.
type folder struct {
	branch
	path   string
	commit gitrepo.Hash
}

// snapshot is a commit with its files in a folder.
type snapshot struct {
	commit gitrepo.PastCommit
	tree   *gitrepo.Tree
}

// New returns a Past.
func New(config Config) *Past {
	return &Past{
		config: config, slots: fairshare.NewCapped(requestsAtOnce, requestsOfOwner),
		histories: boundedcache.New[branch](maxCommits, func(h []gitrepo.PastCommit) int64 { return int64(len(h)) }),
		trees:     boundedcache.New[folder](maxTrees, func(s snapshot) int64 { return s.tree.Size() }),
		gone:      newGone(config.Clock),
	}
}

func branchOf(source *mirror.Source) branch {
	return branch{repository: string(source.Repository), generation: source.Generation, name: source.Branch}
}

// run calls read with a slot of a namespace and a time limit.
func (p *Past) run(ctx context.Context, namespace string, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	release, err := p.slots.Acquire(limited, namespace)
	if err == nil {
		defer release()
		err = read(limited)
	}
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		return errTimeout()
	}
	return err
}

func errTimeout() error {
	return apierrors.NewTimeoutError(fmt.Sprintf("the repository was not read within %s", timeout), retrySeconds)
}

// open opens the source of a destination. Errors for the caller name no more than the destination: the caller need not be allowed to read
// it, nor its repository.
func (p *Past) open(ctx context.Context, destination *v1alpha1.GitDestination) (*mirror.Source, error) {
	source, err := p.config.Sources.Open(ctx, destination)
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Failed to open the repository of a GitDestination for reading", "destination", klog.KObj(destination), "err", err)
		return nil, unavailable(destination, "its repository cannot be used")
	}
	return source, nil
}

// unavailable returns the error if the repository of a destination cannot be read now.
func unavailable(destination *v1alpha1.GitDestination, why string) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf(
		"what was mirrored to GitDestination %s/%s cannot be read now: %s; its conditions have the reason",
		destination.Namespace, destination.Name, why))
}

// failure returns the error for callers if a remote could not be read.
func failure(ctx context.Context, destination *v1alpha1.GitDestination, err error) error {
	var git *gitrepo.Error
	if err == nil || !errors.As(err, &git) {
		return err
	}
	klog.FromContext(ctx).V(1).Info("Failed to read a repository", "destination", klog.KObj(destination), "err", err)
	switch git.Kind {
	case gitrepo.TooLarge:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the repository of GitDestination %s/%s is too large to be read: %s", destination.Namespace, destination.Name, git.Message))
	default:
		return unavailable(destination, fmt.Sprintf("the repository is %s", reasons[git.Kind]))
	}
}

// reasons say what is wrong with a repository. The messages of Git servers are not for every caller.
var reasons = map[gitrepo.Kind]string{
	gitrepo.Unreachable:  "not reachable",
	gitrepo.Unauthorized: "not readable with the credentials of the GitRepoConfig",
	gitrepo.NotFound:     "not found",
	gitrepo.Rejected:     "not readable, the server refuses the request",
	gitrepo.Protocol:     "not readable, the server sends something else than Git would",
	gitrepo.Invalid:      "not usable",
}

// history returns the history of a branch, oldest first.
func (p *Past) history(ctx context.Context, source *mirror.Source) ([]gitrepo.PastCommit, error) {
	key := branchOf(source)
	known, _ := p.histories.Get(key)
	history, err := source.Remote.History(ctx, source.Branch, known)
	if err != nil {
		return nil, err
	}
	p.histories.Put(key, history)
	return history, nil
}

// read returns the files of the source as a commit has them: zero is the tip, behind is the number of commits since then.
func (p *Past) read(ctx context.Context, source *mirror.Source, commit gitrepo.Hash, behind int) (snapshot, error) {
	key := folder{branch: branchOf(source), path: source.Folder, commit: commit}
	if found, ok := p.trees.Get(key); ok && !commit.IsZero() {
		return found, nil
	}
	read, tree, err := source.Remote.Tree(ctx, gitrepo.Past{Branch: source.Branch, Commit: commit, Behind: behind}, source.Folder)
	if err != nil {
		return snapshot{}, err
	}
	key.commit = read.Hash
	p.trees.Put(key, snapshot{commit: read, tree: tree})
	return snapshot{commit: read, tree: tree}, nil
}

// contents returns contents by hash, from the cache or the remote. It omits what the remote does not have or is too large, and sets More
// like gitrepo.Remote.Blobs once it has read maxCached from the cache. isSecret reports whether a blob is that of a Secret.
func (p *Past) contents(
	ctx context.Context, source *mirror.Source, where gitrepo.BlobsOptions, blobs []gitrepo.Hash, isSecret func(gitrepo.Hash) bool,
) (gitrepo.Blobs, error) {
	found := map[gitrepo.Hash][]byte{}
	var missing []gitrepo.Hash
	size, more := 0, false
	for _, hash := range blobs {
		if more = size >= maxCached; more {
			break
		}
		if content, ok := p.cached(hash); ok {
			found[hash] = content
			size += len(content)
		} else {
			missing = append(missing, hash)
		}
	}
	if len(missing) == 0 {
		return gitrepo.Blobs{Found: found, More: more}, nil
	}
	fetched, err := source.Remote.Blobs(ctx, where, missing...)
	if err != nil {
		return gitrepo.Blobs{}, err
	}
	for hash, content := range fetched.Found {
		found[hash] = content
		if p.config.Contents != nil && !(isSecret(hash) && !bytes.Contains(content, sopsField)) {
			p.config.Contents.Put(hash, content)
		}
	}
	return gitrepo.Blobs{Found: found, More: more || fetched.More}, nil
}

// sopsField is in every file that SOPS has encrypted. Secrets in plain text are not cached: the cache may be on a disk.
var sopsField = []byte("\nsops:\n")

// cached returns a content of the cache, if it is intact.
func (p *Past) cached(hash gitrepo.Hash) ([]byte, bool) {
	if p.config.Contents == nil {
		return nil, false
	}
	content, found := p.config.Contents.Get(hash)
	return content, found && gitrepo.BlobHash(content) == hash
}

// keys returns the private keys and the seed of the server; none if it holds none, or they cannot be read.
func (p *Past) keys(ctx context.Context) sops.Opener {
	identities, err := keyring.Identities(ctx, p.config.Cluster.CoreV1(), p.config.Namespace)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the private key of Secrets in Git")
	}
	seed, err := keyring.Seed(ctx, p.config.Cluster.CoreV1(), p.config.Namespace)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the seed of Secrets in Git")
	}
	return sops.Opener{Identities: identities, Seed: seed}
}
