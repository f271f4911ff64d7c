// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitRepoConfig is a Git repository to which the cluster may be mirrored: its URL and credentials, the branches that may
// be written, and the form of commits.
type GitRepoConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec GitRepoConfigSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status GitRepoConfigStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitRepoConfigList is a list of GitRepoConfigs.
type GitRepoConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []GitRepoConfig `json:"items"`
}

// GitRepoConfigSpec describes a repository.
type GitRepoConfigSpec struct {
	// repoUrl is the URL of the repository: https://host/path, ssh://user@host:port/path or user@host:path. http:// and
	// file:// are rejected unless the server was started with --git-allow-insecure. Credentials belong into the Secret
	// that secretRef names, never into the URL.
	RepoURL string `json:"repoUrl"`
	// allowedBranches are the branches that destinations may write: exact names or globs, in which * matches within one
	// path segment, ? one character and [a-z] a range. Empty allows none, so at least one is needed before a
	// GitDestination can use the repository. At most 500.
	// +optional
	// +listType=set
	AllowedBranches []string `json:"allowedBranches,omitempty"`
	// secretRef names the Secret with the credentials, in this namespace. For https: password, and username unless the
	// server accepts any, or bearerToken, or tls.crt and tls.key; for ssh: ssh-privatekey (or identity), passphrase if the
	// key has one, ssh-privatekey-cert.pub (or identity-cert.pub) with its SSH certificate if the server wants one, and
	// known_hosts, which is required and may name authorities of host certificates. caBundle (or ca.crt) has the
	// certificates of a private certificate authority. Without a Secret, access is anonymous.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// provider defines how the server logs in. generic: with what the Secret has, as above. github: as a GitHub App, with
	// githubAppID, githubAppInstallationID (or githubAppInstallationOwner) and githubAppPrivateKey in the Secret, and
	// githubAppBaseURL for GitHub Enterprise. azure: at Azure DevOps with the workload identity of the server, without a
	// Secret. Defaults to generic.
	// +optional
	// +default=ref(ProviderGeneric)
	Provider GitProvider `json:"provider,omitempty"`
	// proxySecretRef names the Secret with the proxy to the repository, in this namespace: address, such as
	// http://proxy.example.com:3128, https:// or socks5:// (for ssh, socks5 only), and username and password if the proxy
	// wants them. Absent means the proxy that the server's environment names for the host, if any.
	// +optional
	ProxySecretRef *SecretReference `json:"proxySecretRef,omitempty"`
	// host is the API of the Git host, which deliveries by pull request need.
	// +optional
	Host *GitHost `json:"host,omitempty"`
	// push bounds how long changes are batched and the number of commits in a push.
	// +optional
	Push *PushPolicy `json:"push,omitempty"`
	// commit configures the form of commits.
	// +optional
	Commit *CommitPolicy `json:"commit,omitempty"`
	// webURLTemplate is the template for links to commits: an http or https URL in which {sha} is replaced by the
	// commit's hash, such as https://example.com/team/repo/commit/{sha}. Empty means no links.
	// +optional
	WebURLTemplate string `json:"webURLTemplate,omitempty"`
	// accessPolicy selects the GitDestinations that may use the repository, and the rules that may mirror objects to it
	// through them: the GitDestination must allow a rule, too. Defaults to the GitDestinations and WatchRules of this
	// namespace.
	// +optional
	AccessPolicy *AccessPolicy `json:"accessPolicy,omitempty"`
}

// GitProvider defines how the server logs in at a repository.
//
// +enum
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
	// type is GitHub, GitLab, Gitea (also for Forgejo) or AzureDevOps. Absent means that of a well-known host in repoUrl,
	// such as github.com, gitlab.com, codeberg.org or dev.azure.com.
	// +optional
	Type GitHostType `json:"type,omitempty"`
	// apiURL is the https URL of the API. Absent means the usual one at the host of repoUrl: https://api.github.com for
	// github.com, else /api/v3 (GitHub), /api/v4 (GitLab), /api/v1 (Gitea), or https://dev.azure.com/ORGANIZATION.
	// +optional
	APIURL string `json:"apiURL,omitempty"`
	// secretRef names the Secret with the token for the API, in this namespace: bearerToken (or token), or password.
	// caBundle (or ca.crt) has the certificates of a private certificate authority. Absent means the token with which the
	// server logs in at the repository, which ssh does not have.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// GitHostType is a kind of Git host.
//
// +enum
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
	// interval is the longest time that a change waits for others to share its push, as a duration such as 20s.
	// Absent means the server's --git-batch-max-wait-sec, which is 20s unless set. At least 100ms, at most 1h.
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// maxCommits is the maximum number of commits in a push; when it is reached, the push starts without waiting. Absent
	// means no bound except for the server's on files and bytes (--git-batch-max-files, 200 unless set, and
	// --git-batch-max-bytes-mib, 1 unless set). At least 1, at most 10000.
	// +optional
	MaxCommits *int32 `json:"maxCommits,omitempty"`
}

// CommitPolicy configures the form of commits.
type CommitPolicy struct {
	// authorTemplate is a Go text/template that returns the author on one line, as "Name <email>". Its fields are
	// .Username, .Name, .Email, .Groups and .Cluster (the cluster's uid); unknown ones are empty. A part that is empty
	// defaults as without a template: to the user's name and email if known, else to the username and username@cluster.
	// It is not used for changes without a known author. Templates may use if, else, with, range over the lists named
	// here, and the functions and, or, not, eq, ne, lt, le, gt, ge, len, index and slice. They are validated with samples
	// when they are set; if one fails for a change, the commit is created as without it.
	// +optional
	AuthorTemplate string `json:"authorTemplate,omitempty"`
	// committer is the committer of every commit, and the author of changes without a known author. Defaults to the
	// server's own.
	// +optional
	Committer *CommitIdentity `json:"committer,omitempty"`
	// messageTemplate is a Go text/template, like authorTemplate, for the message above the trailers, at most 64 KiB. Its
	// fields are .Subject (the first line without a template), .Summary (the text that follows it if there are several
	// changes), .Operation (CREATE, UPDATE or DELETE if all changes agree, BATCH if they differ, SEED if a comparison
	// found them), .Count, .Created, .Updated and .Deleted (numbers of changes), .Group, .Version, .Resource, .Namespace
	// and .Name (what all changes have in common, else empty), .Destination (namespace/name), .Cluster (its uid),
	// .Username, .Author, .ImpersonatedBy, .Attribution (audit, admission, managed-fields or unknown) and .Changes, a
	// list of .Operation, .Group, .Version, .Resource, .Namespace and .Name, of the first 1000 changes. Empty means the
	// subject and the summary.
	// +optional
	MessageTemplate string `json:"messageTemplate,omitempty"`
	// signing signs every commit. Absent means that commits are not signed.
	// +optional
	Signing *CommitSigning `json:"signing,omitempty"`
}

// CommitIdentity is a name and an email address in a commit.
type CommitIdentity struct {
	// name, such as "Slipstream". At most 256 bytes.
	Name string `json:"name"`
	// email, such as slipstream@example.com. At most 256 bytes.
	Email string `json:"email"`
}

// CommitSigning configures how commits are signed.
type CommitSigning struct {
	// secretRef names the Secret with the key, in this namespace: ssh-privatekey (or identity) for SSH, git.asc for OpenPGP,
	// and passphrase if the key has one. git.asc may have several keys: each commit is signed by the first that can sign
	// then, so that the next key can be added before the current one expires.
	SecretRef SecretReference `json:"secretRef"`
	// format is SSH or OpenPGP. Defaults to SSH.
	// +optional
	// +default=ref(SigningFormatSSH)
	Format SigningFormat `json:"format,omitempty"`
}

// SigningFormat is a kind of commit signature.
//
// +enum
type SigningFormat string

const (
	// SigningFormatSSH signs with an SSH key (SSHSIG).
	SigningFormatSSH SigningFormat = "SSH"
	// SigningFormatOpenPGP signs with an OpenPGP key.
	SigningFormatOpenPGP SigningFormat = "OpenPGP"
)

// GitRepoConfigStatus is the observed state of a repository.
type GitRepoConfigStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether the repository can be reached and written.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
