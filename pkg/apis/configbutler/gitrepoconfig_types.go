// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitRepoConfig is a Git repository to which the cluster may be mirrored: its URL and credentials, the branches that may
// be written, and the form of commits.
type GitRepoConfig struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   GitRepoConfigSpec
	Status GitRepoConfigStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitRepoConfigList is a list of GitRepoConfigs.
type GitRepoConfigList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []GitRepoConfig
}

// GitRepoConfigSpec describes a repository.
type GitRepoConfigSpec struct {
	RepoURL         string
	AllowedBranches []string
	SecretRef       *SecretReference
	Provider        GitProvider
	ProxySecretRef  *SecretReference
	Host            *GitHost
	Push            *PushPolicy
	Commit          *CommitPolicy
	WebURLTemplate  string
	AccessPolicy    *AccessPolicy
}

// GitProvider defines how the server logs in at a repository.
type GitProvider string

const (
	// ProviderGeneric logs in with a password, a token or a key from the Secret.
	ProviderGeneric GitProvider = "generic"
	// ProviderGitHub logs in as a GitHub App.
	ProviderGitHub GitProvider = "github"
	// ProviderAzure logs in at Azure DevOps with a workload identity.
	ProviderAzure GitProvider = "azure"
)

// GitHost is the API of a Git host.
type GitHost struct {
	Type      GitHostType
	APIURL    string
	SecretRef *SecretReference
}

// GitHostType is a kind of Git host.
type GitHostType string

const (
	// GitHostGitHub is GitHub, or GitHub Enterprise.
	GitHostGitHub GitHostType = "GitHub"
	// GitHostGitLab is GitLab.
	GitHostGitLab GitHostType = "GitLab"
	// GitHostGitea is Gitea or Forgejo.
	GitHostGitea GitHostType = "Gitea"
	// GitHostAzureDevOps is Azure DevOps.
	GitHostAzureDevOps GitHostType = "AzureDevOps"
)

// PushPolicy bounds a push. Changes of a quiet branch are pushed immediately; the bounds apply while further changes
// arrive.
type PushPolicy struct {
	Interval   *metav1.Duration
	MaxCommits *int32
}

// CommitPolicy configures the form of commits.
type CommitPolicy struct {
	AuthorTemplate  string
	Committer       *CommitIdentity
	MessageTemplate string
	Signing         *CommitSigning
}

// CommitIdentity is a name and an email address in a commit.
type CommitIdentity struct {
	Name  string
	Email string
}

// CommitSigning configures how commits are signed.
type CommitSigning struct {
	SecretRef SecretReference
	Format    SigningFormat
}

// SigningFormat is a kind of commit signature.
type SigningFormat string

const (
	// SigningFormatSSH signs with an SSH key (SSHSIG).
	SigningFormatSSH SigningFormat = "SSH"
	// SigningFormatOpenPGP signs with an OpenPGP key.
	SigningFormatOpenPGP SigningFormat = "OpenPGP"
)

// GitRepoConfigStatus is the observed state of a repository.
type GitRepoConfigStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
}
