// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestination is a folder on a branch to which rules mirror objects. Its progress is in the GitDestinationStatus of
// the same name.
type GitDestination struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   GitDestinationSpec
	Status GitDestinationState
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationList is a list of GitDestinations.
type GitDestinationList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []GitDestination
}

// GitDestinationSpec describes a folder on a branch and how objects are written to it.
type GitDestinationSpec struct {
	RepoRef       ObjectReference
	Branch        string
	BaseFolder    string
	Delivery      *Delivery
	AccessPolicy  *AccessPolicy
	ExclusiveMode bool
	Granularity   Granularity
	Secrets       SecretsPolicy
	Encryption    *Encryption
	Prune         PrunePolicy
	Ignore        []IgnoreRule
	Suspend       bool
}

// Delivery defines how commits reach a branch.
type Delivery struct {
	Type        DeliveryType
	PullRequest *PullRequestDelivery
}

// DeliveryType is a way in which commits reach a branch.
type DeliveryType string

const (
	// DeliveryPush pushes commits to the branch.
	DeliveryPush DeliveryType = "Push"
	// DeliveryPullRequest pushes commits to a branch of the destination's own, and keeps one pull request from it to the
	// branch as long as the two differ.
	DeliveryPullRequest DeliveryType = "PullRequest"
)

// PullRequestDelivery configures the pull request of a destination.
type PullRequestDelivery struct {
	BranchPrefix   string
	Title          string
	Body           string
	Labels         []string
	Reviewers      []string
	Draft          bool
	CloseWhenEqual *bool
	MaxOpenAge     *metav1.Duration
}

// Granularity defines how changes are grouped into commits.
type Granularity string

const (
	// GranularityPerAuthor groups consecutive changes of one author into a commit.
	GranularityPerAuthor Granularity = "PerAuthor"
	// GranularityPerChange creates a commit for each change.
	GranularityPerChange Granularity = "PerChange"
	// GranularityBatch creates one commit for all changes of a push.
	GranularityBatch Granularity = "Batch"
)

// SecretsPolicy defines how Secrets are written.
type SecretsPolicy string

const (
	// SecretsEncrypt writes Secrets encrypted.
	SecretsEncrypt SecretsPolicy = "Encrypt"
	// SecretsAsIs writes Secrets in plain text.
	SecretsAsIs SecretsPolicy = "AsIs"
	// SecretsOmit does not write Secrets.
	SecretsOmit SecretsPolicy = "Omit"
)

// PrunePolicy defines what happens to files without an object.
type PrunePolicy string

const (
	// PruneAlways removes them.
	PruneAlways PrunePolicy = "Always"
	// PruneNever keeps and counts them.
	PruneNever PrunePolicy = "Never"
)

// Encryption configures who can decrypt encrypted Secrets.
type Encryption struct {
	AgeRecipients []string
}

// GitDestinationState is the observed state of a destination.
type GitDestinationState struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	PendingSyncs       []PendingSync
	Claim              *FolderClaim
}

// FolderClaim is a folder that a destination names, and how far the server has come with it.
type FolderClaim struct {
	Repository string
	Branch     string
	Folder     string
	Since      metav1.Time
	State      ClaimState
}

// ClaimState is how far the server has come with a folder.
type ClaimState string

const (
	// ClaimNamed means that the spec names the folder.
	ClaimNamed ClaimState = "Named"
	// ClaimReached means that the branch has been read with the credentials of the GitRepoConfig.
	ClaimReached ClaimState = "Reached"
	// ClaimWritten means that the marker in the folder names the destination.
	ClaimWritten ClaimState = "Written"
)
