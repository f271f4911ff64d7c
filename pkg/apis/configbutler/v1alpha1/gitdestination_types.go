// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.MirrorSync,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.MirrorSync
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestination is a folder on a branch to which rules mirror objects. Its progress is in the GitDestinationStatus of
// the same name.
type GitDestination struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec GitDestinationSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status GitDestinationState `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationList is a list of GitDestinations.
type GitDestinationList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []GitDestination `json:"items"`
}

// GitDestinationSpec describes a folder on a branch and how objects are written to it.
type GitDestinationSpec struct {
	// repoRef names the GitRepoConfig of the repository.
	RepoRef ObjectReference `json:"repoRef"`
	// branch is the branch to write, such as main. The repository's allowedBranches must include it; it is created if it
	// is missing. With delivery by pull request it is the branch to which changes are proposed; see delivery.
	Branch string `json:"branch"`
	// baseFolder is the folder that belongs to this destination, relative to the repository's root, such as
	// clusters/production. It must not be inside, or contain, another destination's folder on the same branch. Empty
	// means the root.
	// +optional
	BaseFolder string `json:"baseFolder,omitempty"`
	// delivery defines how commits reach the branch: by pushes to it, or by a pull request. Defaults to pushes.
	// +optional
	Delivery *Delivery `json:"delivery,omitempty"`
	// accessPolicy selects the rules that may refer to this destination. The GitRepoConfig must allow them, too. Defaults
	// to the WatchRules of this namespace.
	// +optional
	AccessPolicy *AccessPolicy `json:"accessPolicy,omitempty"`
	// exclusiveMode stops writing to a folder that has another owner's marker, and reports it in the condition
	// OwnershipConflict. Without it, the conflict is reported and writing continues. Defaults to false.
	// +optional
	ExclusiveMode bool `json:"exclusiveMode,omitempty"`
	// granularity defines how changes are grouped into commits. PerAuthor: consecutive changes of one author share a
	// commit. PerChange: each change has its own. Batch: all changes of a push share one. Defaults to PerAuthor.
	// +optional
	// +default=ref(GranularityPerAuthor)
	Granularity Granularity `json:"granularity,omitempty"`
	// secrets defines how Secrets are written. Encrypt: encrypted, in the format of SOPS with age. AsIs: in plain text,
	// readable by all readers of the repository. Omit: not at all. Defaults to Encrypt.
	// +optional
	// +default=ref(SecretsEncrypt)
	Secrets SecretsPolicy `json:"secrets,omitempty"`
	// encryption configures who can decrypt encrypted Secrets. It must be absent if secrets is AsIs.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`
	// prune defines what happens to files without an object. Always: they are removed. Never: they are kept and counted
	// in the GitDestinationStatus, to review them first. Defaults to Always.
	// +optional
	// +default=ref(PruneAlways)
	Prune PrunePolicy `json:"prune,omitempty"`
	// ignore names fields that are not mirrored. At most 100 rules, with at most 1000 fields and managers in total, and 64
	// KiB of fields.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
	// suspend stops writing. Changes are stored, and written when it is lifted. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Delivery defines how commits reach a branch.
type Delivery struct {
	// type is Push or PullRequest. Defaults to Push.
	// +optional
	// +default=ref(DeliveryPush)
	Type DeliveryType `json:"type,omitempty"`
	// pullRequest configures the pull request. It must be absent if type is Push.
	// +optional
	PullRequest *PullRequestDelivery `json:"pullRequest,omitempty"`
}

// DeliveryType is a way in which commits reach a branch.
//
// +enum
type DeliveryType string

const (
	// DeliveryPush pushes commits to the branch.
	DeliveryPush DeliveryType = "Push"
	// DeliveryPullRequest pushes commits to a branch of the destination's own, and keeps one pull request from it to the
	// branch as long as the two differ.
	DeliveryPullRequest DeliveryType = "PullRequest"
)

// DefaultBranchPrefix is the default of a PullRequestDelivery's branchPrefix.
const DefaultBranchPrefix = "slipstream/"

// PullRequestDelivery configures the pull request of a destination. The host is that of the GitRepoConfig: its host and
// the token for its API.
type PullRequestDelivery struct {
	// branchPrefix is the first segment of the name of the branch with the commits, before NAMESPACE/NAME of the destination.
	// allowedBranches must include that branch, by a glob such as slipstream/*/*. The branch belongs to the destination: it
	// is replaced by force when its base moves. Clusters that propose to the same repository need different prefixes. One
	// segment that ends with /. Defaults to slipstream/.
	// +optional
	// +default=ref(DefaultBranchPrefix)
	BranchPrefix string `json:"branchPrefix,omitempty"`
	// title of the pull request, at most 200 bytes. Defaults to "Changes of GitDestination NAMESPACE/NAME".
	// +optional
	Title string `json:"title,omitempty"`
	// body is text in Markdown below the table of changes, at most 2000 bytes.
	// +optional
	Body string `json:"body,omitempty"`
	// labels are added to the pull request, and never removed. At most 20. Azure DevOps calls them tags.
	// +optional
	// +listType=set
	Labels []string `json:"labels,omitempty"`
	// reviewers are the names of users who are asked to review, as the host knows them, or of teams as ORGANIZATION/TEAM; for
	// Azure DevOps their ids. They are added, and never removed. At most 20.
	// +optional
	// +listType=set
	Reviewers []string `json:"reviewers,omitempty"`
	// draft opens the pull request as a draft. Reviewers decide when it is ready. Defaults to false.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// closeWhenEqual closes the pull request, with a comment, when there is no difference to its base any more. Defaults to
	// true.
	// +optional
	// +default=true
	CloseWhenEqual *bool `json:"closeWhenEqual,omitempty"`
	// maxOpenAge is the age at which an open pull request is reported, by the condition ProposalOverdue, as a duration such
	// as 168h. At least 1h. Absent means never.
	// +optional
	MaxOpenAge *metav1.Duration `json:"maxOpenAge,omitempty"`
}

// Granularity defines how changes are grouped into commits.
//
// +enum
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
//
// +enum
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
//
// +enum
type PrunePolicy string

const (
	// PruneAlways removes them.
	PruneAlways PrunePolicy = "Always"
	// PruneNever keeps and counts them.
	PruneNever PrunePolicy = "Never"
)

// Encryption configures who can decrypt encrypted Secrets.
type Encryption struct {
	// ageRecipients are age public keys, such as age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p. Empty
	// means a key pair that the server creates once and stores in a Secret in its own namespace. At most 100.
	// +optional
	// +listType=set
	AgeRecipients []string `json:"ageRecipients,omitempty"`
}

// GitDestinationState is the observed state of a destination.
type GitDestinationState struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether objects are mirrored to the folder; OwnershipConflict, that its marker names
	// another owner; AccessDenied, that the repository does not allow this destination; SecretsEncrypted, whether the
	// Secrets in it are encrypted and for whom; ProposalDeclined, that the last pull request was closed without a merge;
	// ProposalOverdue, that one is open for longer than maxOpenAge.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// pendingSyncs are requests at the subresource sync that have not been carried out yet. Their progress is in the
	// GitDestinationStatus.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingSyncs []PendingSync `json:"pendingSyncs,omitempty"`
	// claim is the folder that the spec names, and since when. It decides which of several destinations with overlapping
	// folders is mirrored.
	// +optional
	Claim *FolderClaim `json:"claim,omitempty"`
}

// FolderClaim is a folder that a destination names, and how far the server has come with it. Of destinations with
// overlapping folders, the one that has come furthest is mirrored; of several, the one that has named the folder for the
// longest time.
type FolderClaim struct {
	// repository identifies the repository: a hash of its URL. Empty if the GitRepoConfig could not be used yet.
	// +optional
	Repository string `json:"repository,omitempty"`
	// branch in the repository.
	// +optional
	Branch string `json:"branch,omitempty"`
	// folder on the branch; empty is the root.
	// +optional
	Folder string `json:"folder,omitempty"`
	// since is when the destination began to name the folder.
	Since metav1.Time `json:"since"`
	// state is Named, Reached or Written.
	State ClaimState `json:"state"`
}

// ClaimState is how far the server has come with a folder.
//
// +enum
type ClaimState string

const (
	// ClaimNamed means that the spec names the folder.
	ClaimNamed ClaimState = "Named"
	// ClaimReached means that the branch has been read with the credentials of the GitRepoConfig.
	ClaimReached ClaimState = "Reached"
	// ClaimWritten means that the marker in the folder names the destination.
	ClaimWritten ClaimState = "Written"
)
