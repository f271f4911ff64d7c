// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/mirror/commitmessage"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// The committer where a GitRepoConfig names none.
const (
	defaultCommitter      = "Slipstream"
	defaultCommitterEmail = "slipstream@configbutler.ai"
)

// operationDeposit is what trailers call the operation of a commit that is of no object.
const operationDeposit = "DEPOSIT"

// Identity is what commits say about the server that made them.
type Identity struct {
	// ClusterUID is the uid of the kube-system namespace.
	ClusterUID string
	// Namespace and Name are the server's own.
	Namespace string
	Name      string
	// Instance tells one process from another.
	Instance string
	// Installation tells those that share their objects and are led in turns from others that may write the same
	// branches. It outlives processes.
	Installation string
}

// wording is how a repository wants its commits to read.
type wording struct {
	identity  Identity
	committer gitrepo.Signature
	author    *commitmessage.AuthorTemplate
	message   *commitmessage.MessageTemplate
}

// newWording reads a repository's templates. Validation has let them pass; one that it would not let pass any more is as
// good as none.
func newWording(identity Identity, repository *v1alpha1.GitRepoConfig) *wording {
	w := &wording{identity: identity, committer: gitrepo.Signature{Name: defaultCommitter, Email: defaultCommitterEmail}}
	policy := repository.Spec.Commit
	if policy == nil {
		return w
	}
	if policy.Committer != nil {
		w.committer = gitrepo.Signature{Name: printable.Line(policy.Committer.Name), Email: printable.Line(policy.Committer.Email)}
	}
	w.author, _ = commitmessage.ParseAuthor(policy.AuthorTemplate)
	w.message, _ = commitmessage.ParseMessage(policy.MessageTemplate)
	return w
}

// commit returns a commit of changes, at least one, less the files. seed says that a comparison found them.
func (w *wording) commit(destination types.NamespacedName, author attribution.Author, changes []outbox.Change, seed bool) gitrepo.Commit {
	commit := gitrepo.Commit{Author: w.committer, Committer: w.committer}
	about := commitmessage.About{
		Destination: destination.String(), Cluster: w.identity.ClusterUID, Username: author.Username,
		Attribution: string(cmp.Or(author.Signal, attribution.Unknown)), ImpersonatedBy: author.ImpersonatedBy,
	}
	if name, email, ok := w.authorOf(author); ok {
		commit.Author.Name, commit.Author.Email, about.Author = name, email, name
	}
	commit.Author.When, commit.Committer.When = changes[len(changes)-1].Time, time.Now()
	described := make([]commitmessage.Change, len(changes))
	for i, change := range changes {
		described[i] = commitmessage.Change{
			Operation: string(change.Operation), Group: change.Object.Group, Version: change.Object.Version,
			Resource: change.Object.Resource, Namespace: change.Object.Namespace, Name: change.Object.Name,
		}
	}
	message := commitmessage.NewMessage(about, described, seed)
	more := []commitmessage.Trailer{{Key: "ImpersonatedBy", Value: author.ImpersonatedBy}, {Key: "NamespaceDeletedBy", Value: author.NamespaceDeletedBy}}
	if len(changes) == 1 && !seed {
		more = slices.Insert(more, 0, commitmessage.Trailer{Key: "ResourceVersion", Value: changes[0].ResourceVersion})
	}
	commit.Message = w.message.Text(message, w.identity.trailers(message, more))
	return commit
}

// deposit returns the commit of a file that is of no object, less the file. Templates are made for objects.
func (w *wording) deposit(destination types.NamespacedName, subject string) gitrepo.Commit {
	commit := gitrepo.Commit{Author: w.committer, Committer: w.committer}
	commit.Author.When = time.Now()
	commit.Committer.When = commit.Author.When
	about := commitmessage.About{Destination: destination.String(), Attribution: string(attribution.Unknown)}
	message := commitmessage.Message{About: about, Subject: subject, Operation: operationDeposit}
	commit.Message = (*commitmessage.MessageTemplate)(nil).Text(message, w.identity.trailers(message, nil))
	return commit
}

// authorOf returns who is written down as the author; nobody, where neither a user nor a field manager is known.
func (w *wording) authorOf(author attribution.Author) (name, email string, ok bool) {
	switch {
	case author.Known():
		name, email = w.author.Identity(commitmessage.User{
			Username: author.Username, Name: author.Name, Email: author.Email, Groups: author.Groups, Cluster: w.identity.ClusterUID,
		})
	case author.Signal == attribution.ManagedFields:
		name, email = commitmessage.Manager(author.Manager)
	default:
		return "", "", false
	}
	return name, email, true
}

// trailers say, readable by `git log --format=%(trailers)`, where a commit comes from. Those of more that say something
// follow the ones that each commit has.
func (id Identity) trailers(m commitmessage.Message, more []commitmessage.Trailer) []commitmessage.Trailer {
	trailers := append([]commitmessage.Trailer{
		{Key: "ClusterUID", Value: id.ClusterUID},
		{Key: "ControllerNS", Value: id.Namespace},
		{Key: "ControllerName", Value: id.Name},
		{Key: "InstanceID", Value: id.Instance},
		{Key: "Destination", Value: m.Destination},
		{Key: "Operation", Value: m.Operation},
		{Key: "Attribution", Value: m.Attribution},
	}, slices.DeleteFunc(more, func(t commitmessage.Trailer) bool { return t.Value == "" })...)
	for i := range trailers {
		trailers[i].Key = "X-ConfigButler-" + trailers[i].Key
	}
	return trailers
}

// subjectOf is the first line of a commit's message.
func subjectOf(commit gitrepo.Commit) string {
	subject, _, _ := strings.Cut(commit.Message, "\n")
	return subject
}
