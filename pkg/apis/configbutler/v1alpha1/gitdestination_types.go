// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.MirrorSync,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.MirrorSync
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestination is a folder on a branch that rules mirror objects to. Its progress is in the GitDestinationStatus of
// the same name.
type GitDestination struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user wants.
	Spec GitDestinationSpec `json:"spec"`
	// status is what the server found. Only the server writes it.
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
	// branch is the branch to write, such as main. The repository's allowedBranches must admit it; it is created when
	// it is missing.
	Branch string `json:"branch"`
	// baseFolder is the folder that belongs to this destination, relative to the repository's root, such as
	// clusters/production. It may not lie inside or around another destination's folder on the same branch. Empty
	// means the root.
	// +optional
	BaseFolder string `json:"baseFolder,omitempty"`
	// accessPolicy says which rules may refer to this destination. The GitRepoConfig has to admit them, too. Defaults to the
	// WatchRules of this namespace.
	// +optional
	AccessPolicy *AccessPolicy `json:"accessPolicy,omitempty"`
	// exclusiveMode refuses to write a folder that carries another owner's marker, and says so in the condition
	// OwnershipConflict. Without it the conflict is reported and writing goes on. Defaults to false.
	// +optional
	ExclusiveMode bool `json:"exclusiveMode,omitempty"`
	// granularity says what makes a commit. PerAuthor: changes of one author in a row share one. PerChange: each change
	// has its own. Batch: everything that is pushed together shares one. Defaults to PerAuthor.
	// +optional
	// +default=ref(GranularityPerAuthor)
	Granularity Granularity `json:"granularity,omitempty"`
	// secrets says what becomes of Secrets. Encrypt: written encrypted, in the format of SOPS with age. AsIs: written
	// plainly, readable for everyone who can read the repository. Omit: left out. Defaults to Encrypt.
	// +optional
	// +default=ref(SecretsEncrypt)
	Secrets SecretsPolicy `json:"secrets,omitempty"`
	// encryption says who can read the Secrets that are written encrypted. It must be absent when secrets is AsIs.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`
	// prune says what becomes of files that no object maps to. Always: removed. Never: counted in the
	// GitDestinationStatus and kept, for a first look. Defaults to Always.
	// +optional
	// +default=ref(PruneAlways)
	Prune PrunePolicy `json:"prune,omitempty"`
	// ignore names fields that are not mirrored. At most 100 rules, which name at most 1000 fields and managers in all.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
	// suspend stops writing. Changes are kept and written when it is lifted. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Granularity is a way to divide changes into commits.
//
// +enum
type Granularity string

const (
	// GranularityPerAuthor lets changes of one author in a row share a commit.
	GranularityPerAuthor Granularity = "PerAuthor"
	// GranularityPerChange makes a commit of each change.
	GranularityPerChange Granularity = "PerChange"
	// GranularityBatch makes one commit of everything that is pushed together.
	GranularityBatch Granularity = "Batch"
)

// SecretsPolicy is what becomes of Secrets.
//
// +enum
type SecretsPolicy string

const (
	// SecretsEncrypt writes Secrets encrypted.
	SecretsEncrypt SecretsPolicy = "Encrypt"
	// SecretsAsIs writes Secrets plainly.
	SecretsAsIs SecretsPolicy = "AsIs"
	// SecretsOmit leaves Secrets out.
	SecretsOmit SecretsPolicy = "Omit"
)

// PrunePolicy is what becomes of files that no object maps to.
//
// +enum
type PrunePolicy string

const (
	// PruneAlways removes them.
	PruneAlways PrunePolicy = "Always"
	// PruneNever counts and keeps them.
	PruneNever PrunePolicy = "Never"
)

// Encryption says who can read encrypted Secrets.
type Encryption struct {
	// ageRecipients are age public keys, such as age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p. Empty
	// means a key pair that the server makes once and keeps in a Secret of its own namespace. At most 100.
	// +optional
	// +listType=set
	AgeRecipients []string `json:"ageRecipients,omitempty"`
}

// GitDestinationState is what the server found out about a destination.
type GitDestinationState struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready says whether the folder is being mirrored to; OwnershipConflict, that its marker names another
	// owner; AccessDenied, that the repository does not admit this destination; SecretsEncrypted, whether
	// the Secrets in it are encrypted and for whom.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// pendingSyncs are the requests, made at the subresource sync, that have not been carried out yet. What becomes of
	// them is in the GitDestinationStatus.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingSyncs []PendingSync `json:"pendingSyncs,omitempty"`
}
