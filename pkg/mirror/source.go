// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
)

// largeReads bounds how many reads of the past that need much memory run at the same time, beside the largeOperations of the mirror.
// One namespace takes one of them, so that its slow Git server does not keep the others from theirs.
const largeReads = 2

// SourcesConfig configures Sources. All fields are required except Azure.
type SourcesConfig struct {
	// Client reads GitRepoConfigs, Cluster the Secrets with their credentials.
	Client  versioned.Interface
	Cluster kubernetes.Interface
	// Namespace returns a namespace of the cluster, or false if it does not exist: repositories admit destinations by the labels of
	// namespaces, and the UID of kube-system identifies the cluster in markers.
	Namespace func(name string) (watch.Namespace, bool)
	// Installation is that of the mirror's Identity.
	Installation string
	// AllowInsecure (--git-allow-insecure) permits http and file URLs.
	AllowInsecure bool
	// Memory (--git-max-memory-mib) is how many bytes one operation on a remote may hold.
	Memory int64
	// Network connects to repositories.
	Network *proxy.Network
	// Azure is the server's identity for repositories of the provider azure.
	Azure *AzureIdentity
}

// Sources open the repositories of GitDestinations to read what was mirrored to them. They are safe for concurrent use.
type Sources struct {
	client       versioned.Interface
	repositories *repositories
	namespace    namespaceLookup
	installation string
}

// NewSources returns Sources.
func NewSources(config SourcesConfig) *Sources {
	return &Sources{
		client: config.Client, namespace: config.Namespace, installation: config.Installation,
		repositories: &repositories{
			cluster: config.Cluster, network: config.Network, allowInsecure: config.AllowInsecure, now: time.Now,
			tokens: gittoken.New(config.Network, time.Now), azure: config.Azure,
			limits: gitrepo.Limits{Memory: config.Memory, Large: fairshare.NewCapped(largeReads, 1)},
		},
	}
}

// Source is the folder of a destination in its repository.
type Source struct {
	// Remote is the repository with its current credentials. The caller closes it.
	Remote *gitrepo.Remote
	// Repository and Generation identify the GitRepoConfig.
	Repository types.UID
	Generation int64
	Branch     string
	Folder     string
	// Written is set if the mirror has found that the marker in the folder names the destination. It finds it a while after the first
	// push.
	Written bool
	// Marker is the path of the marker in the repository.
	Marker string

	// owner is what the marker has if the destination owns the folder.
	owner v1alpha1.OwnerMarker
}

// Owned reports whether the content of the marker names the destination.
func (s *Source) Owned(marker []byte) bool {
	found, err := parseMarker(marker)
	found.Time = s.owner.Time
	return err == nil && found == s.owner
}

// Open returns the source of a destination. It returns an error if the GitRepoConfig does not admit the destination or its branch, or if
// the Secret cannot be used.
func (s *Sources) Open(ctx context.Context, destination *v1alpha1.GitDestination) (*Source, error) {
	name := destination.Spec.RepoRef.NamespacedName(destination.Namespace)
	config, err := s.client.ConfigbutlerV1alpha1().GitRepoConfigs(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read GitRepoConfig %s: %w", name, err)
	}
	plan := planDestination(destination, map[types.NamespacedName]*v1alpha1.GitRepoConfig{name: config}, inputs{namespaces: s.namespace})
	if !plan.problem.IsZero() {
		return nil, &reasonError{plan.problem}
	}
	branch, err := s.branchOf(ctx, destination, plan)
	if err != nil {
		return nil, err
	}
	remote, err := s.repositories.remote(ctx, config)
	if err != nil {
		return nil, err
	}
	claim, system := destination.Status.Claim, watch.Namespace{}
	if found, known := s.namespace(metav1.NamespaceSystem); known {
		system = found
	}
	return &Source{
		Remote: remote, Repository: config.UID, Generation: config.Generation, Branch: branch,
		Folder: destination.Spec.BaseFolder, Marker: plan.file(markerPath),
		Written: claim != nil && claim.State == v1alpha1.ClaimWritten && placeOf(claim) == plan.place(),
		owner: v1alpha1.OwnerMarker{
			ClusterUID: string(system.UID), Namespace: destination.Namespace, Name: destination.Name, Instance: s.installation,
		},
	}, nil
}

// branchOf returns the branch that has what was mirrored to a destination: with delivery by pull request the branch of the open one, which
// has what the base lacks, or the base.
func (s *Sources) branchOf(ctx context.Context, destination *v1alpha1.GitDestination, plan *destinationPlan) (string, error) {
	if plan.branch.base == "" {
		return plan.branch.branch, nil
	}
	record, err := s.client.ConfigbutlerV1alpha1().GitDestinationStatuses(destination.Namespace).Get(ctx, destination.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return plan.branch.base, nil
	case err != nil:
		return "", fmt.Errorf("read the GitDestinationStatus: %w", err)
	}
	if open := record.Status.Proposal; open != nil && open.State == v1alpha1.ProposalOpen && open.Branch == plan.branch.branch {
		return plan.branch.branch, nil
	}
	return plan.branch.base, nil
}
