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

// The default committer, for a GitRepoConfig that sets none.
const (
	defaultCommitter      = "Slipstream"
	defaultCommitterEmail = "slipstream@configbutler.ai"
)

// operationDeposit is the operation in the trailers of a commit without objects.
const operationDeposit = "DEPOSIT"

// Identity identifies the server in its commits.
type Identity struct {
	// ClusterUID is the uid of the kube-system namespace.
	ClusterUID string
	// Namespace and Name are the server's own.
	Namespace string
	Name      string
	// Instance identifies the process.
	Instance string
	// Installation identifies the installation: the replicas that share their objects and of which one leads. Other installations may
	// write the same branches. It outlives processes.
	Installation string
}

// wording renders the commits of a repository.
type wording struct {
	identity  Identity
	committer gitrepo.Signature
	author    *commitmessage.AuthorTemplate
	message   *commitmessage.MessageTemplate
}

// newWording parses a repository's templates. Validation has accepted them; a template that is not valid any more is ignored.
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

// commit returns the commit of changes, at least one, without the files. seed is set if a comparison has found the changes. notices are
// further trailers.
func (w *wording) commit(
	destination types.NamespacedName, author attribution.Author, changes []outbox.Change, seed bool, notices []commitmessage.Trailer,
) gitrepo.Commit {
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
	more := []commitmessage.Trailer{
		{Key: "ImpersonatedBy", Value: author.ImpersonatedBy}, {Key: "NamespaceDeletedBy", Value: author.NamespaceDeletedBy},
	}
	if len(changes) == 1 && !seed {
		more = slices.Insert(more, 0, commitmessage.Trailer{Key: "ResourceVersion", Value: changes[0].ResourceVersion})
	}
	commit.Message = w.message.Text(message, w.identity.trailers(message, append(more, notices...)))
	return commit
}

// maxNotices is the number of reasons and of managers that a commit of several changes names.
const maxNotices = 10

// noticesOf returns the trailers with the reasons of changes, and with what manages the objects of those that bypass it.
func noticesOf(specs []v1alpha1.ChangeSpec) []commitmessage.Trailer {
	var reasons, managers []commitmessage.Trailer
	for i := range specs {
		reason := commitmessage.Trailer{Key: "Reason", Value: specs[i].Reason}
		if reason.Value != "" && len(reasons) < maxNotices && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		if !specs[i].Bypass {
			continue
		}
		manager := commitmessage.Trailer{Key: "Bypass", Value: describeManager(specs[i].ManagedBy)}
		if len(managers) < maxNotices && !slices.Contains(managers, manager) {
			managers = append(managers, manager)
		}
	}
	return append(reasons, managers...)
}

// deposit returns the commit of a deposit, without the file. The repository's templates do not apply, because they are about objects.
func (w *wording) deposit(destination types.NamespacedName, subject string) gitrepo.Commit {
	commit := gitrepo.Commit{Author: w.committer, Committer: w.committer}
	commit.Author.When = time.Now()
	commit.Committer.When = commit.Author.When
	about := commitmessage.About{Destination: destination.String(), Attribution: string(attribution.Unknown)}
	message := commitmessage.Message{About: about, Subject: subject, Operation: operationDeposit}
	commit.Message = (*commitmessage.MessageTemplate)(nil).Text(message, w.identity.trailers(message, nil))
	return commit
}

// authorOf returns the author of a commit. ok is false if neither a user nor a field manager is known.
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

// trailers returns the trailers that describe the origin of a commit, for `git log --format=%(trailers)`: those of every commit, followed
// by those of more that have a value.
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

// subjectOf returns the first line of a commit's message.
func subjectOf(commit gitrepo.Commit) string {
	subject, _, _ := strings.Cut(commit.Message, "\n")
	return subject
}
