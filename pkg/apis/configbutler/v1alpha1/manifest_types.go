// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:conversion-gen:explicit-from=net/url.Values

// ManifestOptions are the query parameters of the subresource objects of a GitDestination.
type ManifestOptions struct {
	metav1.TypeMeta `json:",inline"`
	// at is when the objects were as they are returned: a time (RFC 3339), a duration before now such as 24h, the hash of a
	// commit of the destination's branch in hexadecimal with at least 7 digits, or the name of a Change with its namespace, as
	// NAMESPACE/NAME. A commit or Change followed by ^ is the state before it. Empty means now: the tip of the branch.
	// Git has the times of commits in seconds: commits of the second that a time with a fraction is within do not count.
	// With a duration, the commits of the second that it leads to count.
	// +optional
	At string `json:"at,omitempty"`
	// resource selects the objects of a type: the plural, with the group unless it is empty, such as deployments.apps or
	// configmaps. Empty selects all types.
	// +optional
	Resource string `json:"resource,omitempty"`
	// namespace selects the objects of a namespace. Empty selects all.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name selects the objects with a name. It requires resource. Empty selects all.
	// +optional
	Name string `json:"name,omitempty"`
	// labelSelector selects objects by their labels, such as app=web. Empty selects all.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// limit is the maximum number of objects that are returned, at most 5000. 0 means 500.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// continue is the token of an earlier response with more objects. The other parameters must be the same.
	// +optional
	Continue string `json:"continue,omitempty"`
	// secrets is Masked (default: the values of Secrets are replaced) or Decrypted. Decrypted requires the permission get on
	// Secrets, or list if more than one is read, and that the server holds the key. Values from before the creation of the
	// namespace, and those of a namespace that does not exist, require get on Secrets in the whole cluster.
	// +optional
	Secrets string `json:"secrets,omitempty"`
}

// How the values of Secrets are shown. The field is a string: query parameters have simple types.
const (
	// SecretsMasked replaces each value with its length class.
	SecretsMasked = "Masked"
	// SecretsDecrypted shows the values.
	SecretsDecrypted = "Decrypted"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestList has objects as they were in Git at some time. It is read at the subresource objects of a GitDestination. kubectl apply
// accepts it.
type ManifestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata. If continue is set, there are more objects.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// commit is the commit whose state was read. Absent if the branch has no commit.
	// +optional
	Commit *ManifestCommit `json:"commit,omitempty"`
	// omitted is the number of objects on this page that are not returned because the caller may not read their types. Only objects in
	// namespaces where the caller may read something are counted.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`
	// unreadable are the files that are no objects, for example because they were edited in Git, and the Secrets that cannot be
	// decrypted, or that the caller may not see, if that was asked for, at most 20.
	// +optional
	// +listType=atomic
	Unreadable []string `json:"unreadable,omitempty"`
	// ignore is the ignore list of the GitDestination: fields that are not mirrored. It is the current one; files that were written
	// with another one can have these fields.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
	// items are the objects, sorted by the paths of their files.
	Items []runtime.RawExtension `json:"items"`
}

// ManifestCommit is the commit that objects were read from.
type ManifestCommit struct {
	// sha is the hash of the commit in hexadecimal.
	SHA string `json:"sha"`
	// time is the committer time.
	Time metav1.Time `json:"time"`
}
